"""Applies observations: one notification per request, monotonic states, history and outbox in one transaction.

Every door ends here (a refresh after a hint, a sweep, a push, the question before a delivery). What differs from
the database is found by one read; where nothing differs nothing is written. A change is one conditional UPDATE that
names the old state, so of two observers of the same change one wins and the other changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.clock import Clock
from config.database import READ_ONLY
from config.steps import Step, StepHook, ignore_step
from reconciler import changes
from reconciler.cases import with_spans
from reconciler.changes import Standing
from reconciler.pause_store.captures import forget_tokens
from reconciler.plan import Case, Trigger
from reconciler.planning import plan_all
from reconciler.reasons import Door
from reconciler.references import Observation, is_storable
from reconciler.routes import Routing
from reconciler.states import AttentionState

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Applied:
    """What one call of `apply` did: how many requests are new, changed their state, or conflicted."""

    new: int = 0
    changed: int = 0
    conflicts: int = 0


class Notifications:
    """The one writer of notification states.

    `on_outbox` is called after a commit that left something to deliver; it must not block.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        routing: Callable[[], Routing],
        *,
        on_outbox: Callable[[], None] = lambda: None,
        on_step: StepHook = ignore_step,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._routing = routing
        self._on_outbox = on_outbox
        self._on_step = on_step

    def on(self, engine: AsyncEngine) -> "Notifications":
        """Return the same writer on another engine of the same database."""
        return Notifications(engine, self._clock, self._routing, on_outbox=self._on_outbox, on_step=self._on_step)

    async def apply(self, namespace: str, observations: Sequence[Observation], *, door: Door) -> Applied:
        """Bring the database to what the observations say; idempotent, safe to run at the same time elsewhere.

        An unknown reference is enrolled only by an observation that carries its request and is not terminal (where
        nothing was told nothing is settled). A terminal state never changes: another terminal one is recorded as a
        conflict, anything else is ignored. One that no database takes is left out, and logged: the others must not
        wait for it. Raises SQLAlchemy's errors; then nothing is written.
        """
        latest = _latest(namespace, observations)
        if not latest:
            return Applied()
        async with self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            known = await changes.standing(connection, namespace, [item.reference.attention_id for item in latest])
        work = _sort_out(latest, known, door)
        if work.is_nothing:
            return Applied()
        async with self._engine.begin() as connection:
            applied, is_planned = await self._write(connection, namespace, work, known, door)
        self._on_step(Step.APPLIED)
        if is_planned:
            self._on_outbox()
        return applied

    async def _write(
        self, connection: AsyncConnection, namespace: str, work: "_Work", known: Mapping[str, Standing], door: Door
    ) -> tuple[Applied, bool]:
        now = self._clock.now()
        made = await changes.enroll(connection, namespace, work.new, now=now)
        made += await changes.move(connection, work.moved, known, now=now)
        await changes.touch(connection, work.seen_again, known)
        await changes.record(connection, made, door=door, now=now)
        settled = [item.reference.attention_id for _, item in made if item.state.is_terminal]
        await forget_tokens(connection, namespace, settled)
        conflicts = await changes.record_conflicts(connection, work.conflicts, known, door=door, now=now)
        planned = await plan_all(connection, await _cases(connection, made), Trigger.SEEN, self._routing(), now=now)
        new = sum(change.old is None for change, _ in made)
        return Applied(new, len(made) - new, conflicts), planned > 0


def _latest(namespace: str, observations: Sequence[Observation]) -> list[Observation]:
    """Return the last observation of each reference, in the order of their ids."""
    latest = {item.reference.attention_id: item for item in observations}
    unstorable = [key for key, item in latest.items() if not is_storable(item.reference)]
    if unstorable:
        log.error("request.unstorable", namespace=namespace, count=len(unstorable))
    return [latest[key] for key in sorted(latest.keys() - set(unstorable))]


async def _cases(connection: AsyncConnection, made: changes.Made) -> list[Case]:
    """Only what comes back has time behind it that does not count."""
    back = [change.case for change, _ in made if change.old is AttentionState.UNAVAILABLE]
    other = [change.case for change, _ in made if change.old is not AttentionState.UNAVAILABLE]
    return [*other, *await with_spans(connection, back)]


@dataclass(frozen=True, slots=True)
class _Work:
    new: Sequence[Observation]
    moved: Sequence[Observation]
    seen_again: Sequence[Observation]
    conflicts: Sequence[Observation]

    @property
    def is_nothing(self) -> bool:
        return not (self.new or self.moved or self.seen_again or self.conflicts)


def _sort_out(observations: Sequence[Observation], known: Mapping[str, Standing], door: Door) -> _Work:
    """Decide what each observation asks of the database.

    A source that only pushes cannot be asked later, so its unchanged word is worth a write: its time is kept.
    """
    new, moved, seen_again, conflicts = [], [], [], []
    for item in observations:
        row = known.get(item.reference.attention_id)
        if row is None:
            if item.request is not None and not item.state.is_terminal:
                new.append(item)
        elif not row.state.is_terminal:
            if (row.state, row.reason) != (item.state, item.reason):
                moved.append(item)
            elif door is Door.PUSH:
                seen_again.append(item)
        elif item.state.is_terminal and item.state is not row.state:
            conflicts.append(item)
    return _Work(new, moved, seen_again, conflicts)
