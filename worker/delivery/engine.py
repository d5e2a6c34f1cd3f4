"""Delivers what the outbox holds: a loop for each destination, so that none waits for another.

Everything that must survive stands in the rows. A process that dies anywhere loses its leases and nothing else; another
one, or itself after a restart, takes them over when they lapse.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock
from config.steps import StepHook, ignore_step
from reconciler.confirm import Confirmer
from reconciler.routes import Routing
from worker.bells import Bell
from worker.channels.destination import Destination
from worker.delivery.batch import Batch, OnAttempt, ignore_attempt
from worker.delivery.limits import Limits
from worker.delivery.loop import DestinationLoop
from worker.delivery.messages import Links
from worker.delivery.orphans import end_orphans, know_destinations
from worker.delivery.provider import Provider
from worker.delivery.tools import Tools, target_of

log = structlog.get_logger()

_NO_ROUTES = Routing((), {})
_AFTER_A_FAILURE = timedelta(seconds=1)


class DeliveryEngine:
    """The delivery of one process; several processes share one outbox.

    `operator` names the destinations of Handbell's own notices. `bell` wakes it and has no other waiter; without one
    it looks every `idle`. `on_attempt` is told of every try, for metrics. `luck` returns numbers in [0, 1) for jitter.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        destinations: Iterable[Destination],
        confirmer: Confirmer,
        *,
        bell: Bell | None = None,
        operator: Sequence[str] = (),
        links: Links | None = None,
        limits: Limits | None = None,
        on_step: StepHook = ignore_step,
        on_attempt: OnAttempt = ignore_attempt,
        luck: Callable[[], float] | None = None,
        routing: Callable[[], Routing] = lambda: _NO_ROUTES,
    ) -> None:
        limits, links = limits or Limits(), links or Links()
        by_name = {destination.name: destination for destination in destinations}
        told = [target_of(by_name[name]) for name in operator if name in by_name]
        self._tools = Tools(engine, clock, by_name, told, limits, luck or random.SystemRandom().random, routing)
        self._bell = bell
        self._is_prepared = False
        self._stop = asyncio.Event()
        self._loops = [
            DestinationLoop(
                self._tools,
                Batch(
                    self._tools,
                    name,
                    Provider(one, links, limits, clock, routing),
                    confirmer,
                    on_step,
                    on_attempt,
                    self._stop,
                ),
                self.wake,
                on_step,
            )
            for name, one in by_name.items()
        ]

    def wake(self) -> None:
        """Let every loop look now."""
        for loop in self._loops:
            loop.wake()

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until `stop` is set or this is cancelled; what is being sent then may still end (bounded)."""
        await self._prepare_at_last()
        helpers = [asyncio.create_task(self._hear(self._bell))] if self._bell is not None else []
        loops = [asyncio.create_task(loop.run()) for loop in self._loops]
        try:
            await stop.wait()
            self._stop.set()
            self.wake()
            await asyncio.wait(loops, timeout=self._tools.limits.drain.total_seconds())
        finally:
            for task in (*helpers, *loops):
                task.cancel()
            await asyncio.gather(*helpers, *loops, return_exceptions=True)

    async def run_due(self) -> None:
        """Deliver, one destination after the other, until nothing is due now; for a single pass and for tests."""
        await self._prepare()
        while any([await loop.run_due() for loop in self._loops]):
            pass

    async def end_orphans(self) -> int:
        """End what waits for a destination that is no longer configured; return how many. For a regular turn."""
        ended = await end_orphans(self._tools)
        if ended:
            log.warning("delivery.orphans_ended", count=ended)
        return ended

    async def _prepare(self) -> None:
        if not self._is_prepared:
            await know_destinations(self._tools)
            await self.end_orphans()
            self._is_prepared = True

    async def _prepare_at_last(self) -> None:
        """Prepare, however long the database is away."""
        while not self._is_prepared:
            try:
                await self._prepare()
            except (SQLAlchemyError, OSError) as error:
                log.warning("delivery.not_prepared", error=type(error).__name__)
                await self._tools.clock.sleep(_AFTER_A_FAILURE)

    async def _hear(self, bell: Bell) -> None:
        while True:
            if await bell.wait(self._tools.limits.idle):
                self.wake()
