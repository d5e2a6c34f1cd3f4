"""Asks a source about enrolled references that a pass did not show, bounded, resuming where it stopped, wrapping.

This is apart from the scan and runs also when the scan failed: absence from a scan proves nothing, only the exact
question about a reference does. A reference that stays unavailable while its store answers is asked about less and
less often.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock
from reconciler.enrolled import Enrolled, EnrolledReader
from reconciler.namespaces import Namespaces
from reconciler.notifications import Notifications
from reconciler.reasons import Door
from reconciler.references import Observation, Reference
from reconciler.sources.protocol import Observes
from reconciler.states import AttentionState, Evidence
from reconciler.tables import NOTIFICATIONS

log = structlog.get_logger()

# The growing interval between two questions about a reference that is unavailable, and its ceiling.
FIRST_RETRY = timedelta(seconds=30)
RETRY_CEILING = timedelta(hours=1)

_BATCH = 50
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Verified:
    """How many references were asked about, and how many of them have another state now."""

    asked: int
    changed: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking: how many have another state now, and whether the store answered about every one."""

    changed: int = 0
    is_answered: bool = True


class OutOfReach:
    """A source whose store did not answer just now: once it does not answer here either, nobody else waits for it."""

    def __init__(self, source: Observes, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._is_confirmed = False

    async def observe(self, reference: Reference) -> Observation:
        """Return what the source says, or that its store is unavailable."""
        if self._is_confirmed:
            state, reason = AttentionState.UNAVAILABLE, Evidence.STORE_UNAVAILABLE
            return Observation(reference, state, reason, self._clock.now())
        seen = await self._source.observe(reference)
        self._is_confirmed = seen.reason is Evidence.STORE_UNAVAILABLE
        return seen


class Verifier:
    """Verifies the open references of one namespace."""

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        notifications: Notifications,
        namespaces: Namespaces,
        *,
        limit: int = 500,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._notifications = notifications
        self._namespaces = namespaces
        self._limit = limit

    async def pass_over(self, namespace: str, source: Observes, *, shown: Collection[str]) -> Verified:
        """Ask about at most `limit` due references that are not in `shown` (attention ids); idempotent."""
        reader = EnrolledReader(self._engine, namespace)
        position = (await self._namespaces.get(namespace)).verify_after
        begun_at, asked, changed, has_wrapped = position, 0, 0, position == 0
        while asked < self._limit:
            batch = await reader.open_after(position, due_at=self._clock.now(), limit=_BATCH)
            if not batch and has_wrapped:
                break
            if not batch:
                position, has_wrapped = 0, True
                continue
            todo = [item for item in batch if item.reference.attention_id not in shown]
            changed += (await self.ask(namespace, source, todo)).changed
            asked += len(todo)
            position = batch[-1].id
            if has_wrapped and begun_at and position >= begun_at:
                break
        reached = position if asked >= self._limit else 0
        if reached != begun_at:
            await self._namespaces.save(namespace, {"verify_after": reached})
        return Verified(asked, changed)

    async def ask(
        self, namespace: str, source: Observes, items: Sequence[Enrolled], *, door: Door = Door.VERIFY
    ) -> Asked:
        """Ask about these references and apply the answers."""
        if not items:
            return Asked()
        gate = asyncio.Semaphore(_AT_ONCE)

        async def observe(item: Enrolled) -> Observation:
            async with gate:
                return await self._observe(namespace, source, item.reference)

        observations = await asyncio.gather(*(observe(item) for item in items))
        applied = await self._notifications.apply(namespace, observations, door=door)
        pairs = zip(items, observations, strict=True)
        await self._ask_later([item for item, seen in pairs if _is_by_itself(seen)])
        is_answered = all(seen.reason is not Evidence.STORE_UNAVAILABLE for seen in observations)
        return Asked(applied.changed, is_answered)

    async def _observe(self, namespace: str, source: Observes, reference: Reference) -> Observation:
        try:
            return await source.observe(reference)
        except Exception as error:  # a bug of a source: one answer must not stop every other source's work
            log.exception("source.failed_unexpectedly", namespace=namespace, error=type(error).__name__)
            state, reason = AttentionState.UNAVAILABLE, Evidence.STORE_UNAVAILABLE
            return Observation(reference, state, reason, self._clock.now())

    async def _ask_later(self, items: Sequence[Enrolled]) -> None:
        now = self._clock.now()
        async with self._engine.begin() as connection:
            for item in items:
                pause = min(FIRST_RETRY * 2 ** min(item.verify_failures, 16), RETRY_CEILING)
                await connection.execute(
                    update(NOTIFICATIONS)
                    .where(NOTIFICATIONS.c.id == item.id, NOTIFICATIONS.c.state == AttentionState.UNAVAILABLE.value)
                    .values(verify_failures=item.verify_failures + 1, verify_due_at=now + pause)
                )


def _is_by_itself(seen: Observation) -> bool:
    """Say whether a reference is unavailable though its store answers: one after an outage is asked about at once."""
    return seen.state is AttentionState.UNAVAILABLE and seen.reason is not Evidence.STORE_UNAVAILABLE
