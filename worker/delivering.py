"""Keeps delivery running on the destinations as they are now: each reload ends one engine in order and begins the next.

What is being sent ends first, within delivery's own bound; what waits stands in SQL and waits for the next engine.
"""

import asyncio
from collections.abc import Callable

from worker.delivery.engine import DeliveryEngine
from worker.live import Live


class Deliverer:
    """The delivery of one process; `make` builds an engine on what is live."""

    def __init__(self, live: Live, make: Callable[[], DeliveryEngine]) -> None:
        self._live = live
        self._make = make
        self._engine = make()

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until `stop` is set or this is cancelled."""
        while not stop.is_set():
            telling = self._live.now
            await self._run_one(stop)
            if self._live.now is not telling:
                await telling.close()
                self._engine = self._make()

    async def end_orphans(self) -> None:
        """End what waits for a destination that is no longer configured."""
        await self._engine.end_orphans()

    async def _run_one(self, stop: asyncio.Event) -> None:
        turn = asyncio.Event()
        working = asyncio.create_task(self._engine.run(turn))
        waits = [asyncio.create_task(stop.wait()), asyncio.create_task(self._live.changed(self._live.now))]
        try:
            await asyncio.wait([working, *waits], return_when=asyncio.FIRST_COMPLETED)
            turn.set()
            await working
        finally:
            for task in (working, *waits):
                task.cancel()
            await asyncio.gather(working, *waits, return_exceptions=True)
