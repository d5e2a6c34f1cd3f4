"""The loop of one destination: look, take, carry, sleep until the bell or the next moment."""

import asyncio
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from sqlalchemy.exc import DBAPIError

from config.steps import Step, StepHook
from reconciler.reasons import DeliveryStatus
from worker.bells import Bell, Stage
from worker.delivery import claims, ledger, stand_ins
from worker.delivery.batch import Batch, log_entry
from worker.delivery.claims import Look
from worker.delivery.tools import Tools

log = structlog.get_logger()

# Rows that are due but held by another transaction are looked for again so soon.
_HELD_ELSEWHERE = timedelta(milliseconds=100)
_FIRST_PAUSE = timedelta(seconds=1)
_LONGEST_PAUSE = timedelta(seconds=30)


class DestinationLoop:
    """Delivers for one destination; `on_more` is called when there is something new for another one."""

    def __init__(self, tools: Tools, batch: Batch, on_more: Callable[[], None], on_step: StepHook) -> None:
        self._tools = tools
        self._name = batch.destination
        self._batch = batch
        self._on_more = on_more
        self._on_step = on_step
        self._bell = Bell(Stage.DELIVERY, tools.clock)

    def wake(self) -> None:
        """Let the loop look now."""
        self._bell.ring()

    async def run(self) -> None:
        """Work until the batch's `stop` is set; a failed pass is logged and repeated later, nothing is lost by it.

        When cancelled, what is being sent may still end and be recorded for `drain`; then the cancellation goes on.
        """
        failures = 0
        while not self._batch.stop.is_set():
            try:
                next_at = await self._undisturbed_pass()
                failures = 0
            except Exception as error:
                failures += 1
                # An outage of the database is waited out; anything else is a bug and shows where it is.
                is_outage = isinstance(error, DBAPIError | OSError)
                log.warning(
                    "delivery.pass_failed",
                    destination=self._name,
                    error=type(error).__name__,
                    exc_info=not is_outage,
                )
                next_at = self._tools.clock.now() + min(_FIRST_PAUSE * 2 ** min(failures, 10), _LONGEST_PAUSE)
            if next_at is not None:
                await self._bell.wait(next_at - self._tools.clock.now())

    async def run_due(self) -> bool:
        """Work until nothing is due now; answer whether anything was done."""
        was_done = False
        while await self.pass_once() is None:
            was_done = True
        return was_done

    async def pass_once(self) -> datetime | None:
        """Do one round; return when to come back, None for at once (there may be more). Raises SQLAlchemy's errors."""
        now = self._tools.clock.now()
        seen = await claims.look(self._tools, self._name)
        if seen.leased_until is not None and seen.leased_until <= now:
            return await self._rescue(seen)
        if self._is_to_hand_over(seen, now) and await stand_ins.hand_over(self._tools, self._name):
            self._on_more()
            return None
        next_at = self._next_moment(seen, now)
        return next_at if next_at > now else await self._carry(seen)

    async def _carry(self, seen: Look) -> datetime | None:
        lease_id = uuid.uuid4().hex
        # One that is broken is probed with a single message.
        limit = 1 if seen.health.broken_at is not None else self._tools.batch_of(self._name)
        rows = await claims.claim(self._tools, self._name, lease_id=lease_id, limit=limit)
        if not rows:
            return self._tools.clock.now() + _HELD_ELSEWHERE
        self._on_step(Step.CLAIMED)
        entries = await self._batch.carry(rows, lease_id, seen.health)
        if any(entry.transition.status is DeliveryStatus.DEAD for entry in entries):
            self._on_more()
        return None

    async def _rescue(self, seen: Look) -> datetime | None:
        taken, entries = await ledger.rescue(self._tools, self._name, uuid.uuid4().hex, known=seen.health)
        if not taken:
            return self._tools.clock.now() + _HELD_ELSEWHERE
        log.warning("delivery.lease_lapsed", destination=self._name, count=taken, begun=len(entries))
        for entry in entries:
            log_entry(entry)
        self._on_more()
        return None

    def _next_moment(self, seen: Look, now: datetime) -> datetime:
        moments = [now + self._tools.limits.idle]
        if seen.leased_until is not None:
            moments.append(seen.leased_until)
        if seen.due_at is not None and seen.health.paused_at is None:
            moments.append(max(seen.due_at, seen.health.next_send_at or seen.due_at))
        return min(moments)

    async def _undisturbed_pass(self) -> datetime | None:
        work = asyncio.create_task(self.pass_once())
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self._batch.stop.set()
            await asyncio.wait({work}, timeout=self._tools.limits.drain.total_seconds())
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            raise

    def _is_to_hand_over(self, seen: Look, now: datetime) -> bool:
        """One that is broken keeps a single message for itself when its probe is due."""
        health = seen.health
        has_fallback = bool(self._tools.destinations[self._name].fallback)
        is_due = seen.due_at is not None and seen.due_at <= now
        probes = health.paused_at is None and (health.next_send_at is None or health.next_send_at <= now)
        return has_fallback and is_due and health.is_held and not probes
