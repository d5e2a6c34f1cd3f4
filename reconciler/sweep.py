"""One bounded pass over a source: pages of what is pending, then the enrolled references that they did not show.

A full pass follows the cursor with unchanged filters; anything that keeps it from having seen everything makes it
incomplete, with the reason recorded, and it resumes where it stopped. A head pass reads only what changed since the
last pass (the source orders by newest change first); it proves nothing about what it did not show.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import structlog
from sqlalchemy import insert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock
from config.steps import Step, StepHook, ignore_step
from reconciler.enrolled import EnrolledReader
from reconciler.errors import SourceError
from reconciler.leases import Lease, Leases
from reconciler.namespaces import Namespaces, Remembered, join_problems
from reconciler.notifications import Notifications
from reconciler.reasons import Door
from reconciler.sightings import forget_unseen, record_sightings
from reconciler.source_book import SourceBook
from reconciler.sources.protocol import Incomplete, Observes, Page, Scans, Source, problem_of
from reconciler.tables import SWEEPS
from reconciler.verify import OutOfReach, Verifier

log = structlog.get_logger()

FULL_PAGE_LIMIT = 200
HEAD_PAGE_LIMIT = 25

# The runtime's clock and ours may differ, and a row may be committed later than it is dated.
HEAD_MARGIN = timedelta(minutes=1)

# An unfinished pass goes on after this, not only when the next one would have been due.
RESUME_AFTER = timedelta(seconds=5)

_LEASE = timedelta(seconds=60)


class Mode(StrEnum):
    """Which pass: everything, or only what changed lately."""

    FULL = "full"
    HEAD = "head"


@dataclass(slots=True)
class Pass:
    """One pass as it goes; what is left of it becomes a row of `sweeps`."""

    namespace: str
    mode: Mode
    started_at: datetime
    cursor: str | None = None
    pages: int = 0
    rows_seen: int = 0
    rows_changed: int = 0
    verified: int = 0
    problems: set[Incomplete] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    has_ended: bool = False

    @property
    def is_complete(self) -> bool:
        """Answer whether a full pass has seen everything there is, without any problem; a head pass never is."""
        return self.mode is Mode.FULL and self.has_ended and not self.problems


class Sweeper:
    """Runs passes, one at a time for each namespace (a lease); correctness does not rest on that.

    `takes_lease=False` runs beside any other, and is never refused.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        book: SourceBook,
        namespaces: Namespaces,
        notifications: Notifications,
        *,
        page_budget: int = 32,
        takes_lease: bool = True,
        on_pass: Callable[[Pass], None] = lambda _pass: None,
        on_step: StepHook = ignore_step,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._book = book
        self._namespaces = namespaces
        self._notifications = notifications
        self._leases = Leases(engine, clock)
        self._verifier = Verifier(engine, clock, notifications, namespaces)
        self._page_budget = page_budget
        self._takes_lease = takes_lease
        self._on_pass = on_pass
        self._on_step = on_step

    async def sweep(self, namespace: str, mode: Mode) -> Pass | None:
        """Run one bounded pass; None where another process is at it. Raises UnknownNamespace."""
        self._book.entry(namespace)
        if not self._takes_lease:
            return await self._run(namespace, mode, None)
        async with self._leases.hold(f"sweep:{namespace}", _LEASE) as lease:
            return await self._run(namespace, mode, lease) if lease else None

    async def _run(self, namespace: str, mode: Mode, lease: Lease | None) -> Pass:
        source = self._book.entry(namespace).source
        problem = await self._recheck(namespace)
        remembered = await self._namespaces.get(namespace)
        current = self._begin(remembered, mode)
        if problem:
            current.problems.add(problem)
        elif isinstance(source, Scans):
            await self._scan(current, source, remembered, lease)
        if mode is Mode.FULL and problem is not Incomplete.WRONG_STORE:
            await self._verify(current, source, is_out_of_reach=problem is not None)
        return await self._finish(current, remembered)

    async def _recheck(self, namespace: str) -> Incomplete | None:
        try:
            await self._book.recheck(namespace)
        except SourceError as error:
            return problem_of(error)
        return None

    def _begin(self, remembered: Remembered, mode: Mode) -> Pass:
        if mode is Mode.HEAD or remembered.scan_cursor is None:
            return Pass(remembered.namespace, mode, self._clock.now())
        started_at = remembered.scan_started_at or self._clock.now()
        problems = set(remembered.scan_problems)
        return Pass(remembered.namespace, mode, started_at, cursor=remembered.scan_cursor, problems=problems)

    async def _scan(self, current: Pass, source: Scans, remembered: Remembered, lease: Lease | None) -> None:
        known = EnrolledReader(self._engine, current.namespace)
        until = remembered.covered_since - HEAD_MARGIN if remembered.covered_since else None
        cursors = {current.cursor}
        while not current.has_ended:
            if current.pages >= self._page_budget:
                current.problems.add(Incomplete.PAGE_BUDGET)
                return
            page = await self._read(current, source, known)
            if page is None:
                return
            await self._take(current, page)
            current.cursor = page.next_cursor
            if page.next_cursor is None and Incomplete.HAS_MORE in page.problems:
                return  # there is more, but no way to it: the next pass begins anew
            current.has_ended = page.next_cursor is None or (
                current.mode is Mode.HEAD and _is_older(page.oldest_updated_at, until)
            )
            if not current.has_ended and page.next_cursor in cursors:
                current.problems.add(Incomplete.REPEATED_CURSOR)
                current.cursor = None
                return
            cursors.add(page.next_cursor)
            if lease is not None:
                await lease.renew()
            self._on_step(Step.SWEEP_PAGE)

    async def _read(self, current: Pass, source: Scans, known: EnrolledReader) -> Page | None:
        """Read the next page; None, and the pass incomplete, where that failed."""
        limit = FULL_PAGE_LIMIT if current.mode is Mode.FULL else HEAD_PAGE_LIMIT
        try:
            return await source.page(current.cursor, limit=limit, known=known)
        except SourceError as error:
            current.problems.add(problem_of(error))
            if error.reason == Incomplete.CURSOR_REFUSED:
                current.cursor = None
        except SQLAlchemyError:  # our own database, which the source asks what is known
            raise
        except Exception as error:  # a bug of a source: the pass is incomplete, and the rest of it goes on
            log.exception("source.failed_unexpectedly", namespace=current.namespace, error=type(error).__name__)
            current.problems.add(Incomplete.STORE_ERROR)
        return None

    async def _take(self, current: Pass, page: Page) -> None:
        applied = await self._notifications.apply(current.namespace, page.active, door=Door.SWEEP)
        await record_sightings(
            self._engine,
            current.namespace,
            withheld=page.withheld,
            delegations=page.delegations,
            now=self._clock.now(),
        )
        current.pages += 1
        current.rows_seen += len(page.active)
        current.rows_changed += applied.new + applied.changed
        current.problems |= page.problems
        current.shown.update(item.reference.attention_id for item in page.active)

    async def _verify(self, current: Pass, source: Source, *, is_out_of_reach: bool) -> None:
        if isinstance(source, Observes):
            asked = OutOfReach(source, self._clock) if is_out_of_reach else source
            verified = await self._verifier.pass_over(current.namespace, asked, shown=current.shown)
            current.verified = verified.asked
            current.rows_changed += verified.changed

    async def _finish(self, current: Pass, remembered: Remembered) -> Pass:
        now = self._clock.now()
        entry = self._book.entry(current.namespace)
        values: dict[str, Any] = {"head_due_at": now + entry.head_every}
        if current.mode is Mode.FULL:
            is_unfinished = current.cursor is not None and not current.has_ended
            values |= {
                "sweep_due_at": now + (min(RESUME_AFTER, entry.sweep_every) if is_unfinished else entry.sweep_every),
                "scan_cursor": current.cursor if is_unfinished else None,
                "scan_started_at": current.started_at if is_unfinished else None,
                "scan_problems": join_problems(_kept(current)) if is_unfinished else "",
            }
        if current.is_complete:
            values["complete_since"] = current.started_at
            await forget_unseen(self._engine, current.namespace, since=current.started_at)
        if current.has_ended:
            values["covered_since"] = current.started_at
        await self._namespaces.finish(remembered, values)
        await self._record(current, now)
        self._on_step(Step.SWEEP_FINISHED)
        self._on_pass(current)
        return current

    async def _record(self, current: Pass, now: datetime) -> None:
        async with self._engine.begin() as connection:
            await connection.execute(
                insert(SWEEPS).values(
                    namespace=current.namespace,
                    mode=current.mode.value,
                    started_at=current.started_at,
                    finished_at=now,
                    pages=current.pages,
                    rows_seen=current.rows_seen,
                    rows_changed=current.rows_changed,
                    verified=current.verified,
                    is_complete=current.is_complete,
                    problems=join_problems(frozenset(current.problems)),
                )
            )


def _kept(current: Pass) -> frozenset[Incomplete]:
    """Return the problems that a resumed pass inherits: those of pages that it will not read again."""
    return frozenset(current.problems & {Incomplete.PENDING_ACTION_ISSUES, Incomplete.UNPROJECTABLE_ACTION})


def _is_older(updated_at: datetime | None, until: datetime | None) -> bool:
    return updated_at is not None and until is not None and updated_at < until
