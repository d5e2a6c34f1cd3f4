"""Carries one batch of one destination from the claim to its recorded outcomes."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlalchemy.exc import SQLAlchemyError

from config.steps import Step, StepHook
from reconciler.confirm import Confirmer
from reconciler.reasons import DeliveryStatus
from worker.channels.outcomes import Sent
from worker.delivery import claims, gate, ledger
from worker.delivery.begin import Begun, begin
from worker.delivery.claims import Health
from worker.delivery.groups import Unit
from worker.delivery.holds import holds
from worker.delivery.ledger import Entry
from worker.delivery.provider import Provider
from worker.delivery.rows import Claimed
from worker.delivery.tools import Tools
from worker.delivery.transitions import Result

log = structlog.get_logger()

# Outcomes that are in are recorded at least this often while others of the batch are still awaited.
_FLUSH_SECONDS = 0.25
_AFTER_A_FAILURE = timedelta(seconds=1)
_RENEWALS = 3


# Told of every try: the channel's type, the outcome, the reason (empty where sent) and how long it took.
OnAttempt = Callable[[str, str, str, timedelta], None]


def ignore_attempt(_channel: str, _outcome: str, _reason: str, _took: timedelta) -> None:
    """Do nothing: where nobody counts."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The work on batches of one destination; `stop` set means that nothing more is sent."""

    tools: Tools
    destination: str
    provider: Provider
    confirmer: Confirmer
    on_step: StepHook
    on_attempt: OnAttempt
    stop: asyncio.Event

    async def carry(self, rows: Sequence[Claimed], lease_id: str, known: Health) -> Sequence[Entry]:
        """Confirm, send and record; what was not sent keeps its turn. Raises SQLAlchemy's errors before sending."""
        policy = self.tools.destinations[self.destination].channel.on_unknown
        held = await holds(self.tools, rows)
        wanted = [
            row.request.enrolled
            for row in rows
            if row.request and row.id not in held and gate.wants_confirmation(row, policy)
        ]
        answers = await self.confirmer.confirm(wanted)
        self.on_step(Step.CONFIRMED)
        now = self.tools.clock.now()
        rulings = [gate.rule(row, policy, answers, self.tools.limits, now, held) for row in rows]
        is_probe = known.broken_at is not None
        begun = await begin(self.tools, self.destination, lease_id, rulings, is_probe=is_probe)
        if not begun.go and not begun.ask:
            return []
        return await _Sending(self, lease_id, known, begun).run()


class _Sending:
    """Sends what was begun and records the outcomes as they come in, renewing the leases meanwhile."""

    def __init__(self, batch: Batch, lease_id: str, known: Health, begun: Begun) -> None:
        self._batch = batch
        self._tools = batch.tools
        self._lease_id = lease_id
        self._known = known
        self._begun = begun
        self._leased_until = begun.leased_until
        self._ids = [go.row.id for unit, _ in begun.go for go in unit.members]
        self._ids += [ask.row.id for asks in begun.ask for ask in asks]
        self._ours = frozenset(self._ids)
        self._at_once = asyncio.Semaphore(batch.tools.limits.at_once)

    async def run(self) -> Sequence[Entry]:
        tasks = {asyncio.create_task(self._send(unit, at)) for unit, at in self._begun.go}
        tasks |= {asyncio.create_task(self._ask([ask.row for ask in asks])) for asks in self._begun.ask}
        heart = asyncio.create_task(self._renew())
        entries: list[Entry] = []
        try:
            while tasks:
                done, tasks = await asyncio.wait(tasks, timeout=_FLUSH_SECONDS)
                if done:
                    entries += await self._record([ended for task in done for ended in task.result()])
        finally:
            for task in (*tasks, heart):
                task.cancel()
            await asyncio.gather(*tasks, heart, return_exceptions=True)
        return entries

    async def _send(self, unit: Unit, at: datetime) -> Sequence[Result | Claimed]:
        """Return the result for each member, or the rows where it was not sent: the lease lapsed or we are to stop."""
        async with self._at_once:
            pause = at - self._tools.clock.now()
            if pause > timedelta(0):
                await self._tools.clock.sleep(pause)
            if self._batch.stop.is_set() or not self._may_still_send(unit):
                return [go.row for go in unit.members]
            results = await self._batch.provider.send(unit)
            self._batch.on_step(Step.SENT)
            return results

    def _may_still_send(self, unit: Unit) -> bool:
        """We were held up, another took the lapsed lease over and sent, and the next renewal keeps the rest only."""
        is_ours = all(go.row.id in self._ours for go in unit.members)
        return is_ours and self._tools.clock.now() < self._leased_until

    async def _ask(self, rows: Sequence[Claimed]) -> Sequence[Result | Claimed]:
        async with self._at_once:
            return await self._batch.provider.find(rows)

    async def _renew(self) -> None:
        while True:
            await self._tools.clock.sleep(self._tools.limits.lease / _RENEWALS)
            with suppress(SQLAlchemyError, OSError):  # then the lease lapses, and nothing more is sent under it
                until = self._tools.clock.now() + self._tools.limits.lease
                self._ours = await claims.renew(self._tools, self._ids, self._lease_id, until)
                self._leased_until = until

    async def _record(self, ended: Sequence[Result | Claimed]) -> Sequence[Entry]:
        """Record until the database takes it: an outcome that is known must not become an unknown one."""
        results = [entry for entry in ended if isinstance(entry, Result)]
        unsent = [entry for entry in ended if isinstance(entry, Claimed)]
        while True:
            try:
                entries = await ledger.record(
                    self._tools, self._batch.destination, self._lease_id, results, unsent, known=self._known
                )
                break
            except (SQLAlchemyError, OSError) as error:
                log.warning("delivery.not_recorded", destination=self._batch.destination, error=type(error).__name__)
                await self._tools.clock.sleep(_AFTER_A_FAILURE)
        self._batch.on_step(Step.ATTEMPT_RECORDED)
        if len(entries) < len(results):
            log.warning("delivery.lease_lost", destination=self._batch.destination, count=len(results) - len(entries))
        for entry in entries:
            log_entry(entry)
            if not entry.result.is_look_up:
                self._count(entry)
        return entries

    def _count(self, entry: Entry) -> None:
        outcome, transition = entry.result.outcome, entry.transition
        reason = "" if outcome is None or isinstance(outcome, Sent) else outcome.reason.value
        self._batch.on_attempt(entry.result.row.channel, transition.attempt.value, reason, entry.result.duration)


def log_entry(entry: Entry) -> None:
    """Say in one line what became of a delivery."""
    row, transition = entry.result.row, entry.transition
    event = {DeliveryStatus.SENT: "delivery.sent", DeliveryStatus.DEAD: "delivery.died"}.get(
        transition.status, "delivery.not_sent"
    )
    level = log.info if transition.status is DeliveryStatus.SENT else log.warning
    level(
        event,
        delivery_id=row.id,
        destination=row.destination,
        channel=row.channel,
        purpose=row.purpose,
        attempt=row.attempts,
        outcome=transition.attempt.value,
        reason=transition.reason.value,
        duration_ms=entry.result.duration // timedelta(milliseconds=1),
    )
