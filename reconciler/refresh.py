"""Refreshes the sessions that unprocessed hints name: asks the source what is pending there now, and applies it.

A hint is only a doorbell: what it said is never believed, the session's present view is. Hints stay unprocessed
after an incomplete view and are tried again; one whose session the source does not know (the runtime may give an
alias) makes a head pass due, once per burst.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock
from config.steps import Step, StepHook, ignore_step
from reconciler.enrolled import EnrolledReader
from reconciler.errors import SourceError
from reconciler.namespaces import Namespaces
from reconciler.notifications import Notifications
from reconciler.reasons import Door
from reconciler.sightings import forget_other_children, record_sightings
from reconciler.source_book import SourceBook
from reconciler.sources.protocol import Incomplete, Observes, RefreshesSessions, SessionView, problem_of
from reconciler.verify import Verifier
from sinks.emit.wakeup import FOLLOW_UP_EVENTS
from sinks.inbox import Inbox, Unprocessed

log = structlog.get_logger()
K = TypeVar("K")

FIRST_RETRY = timedelta(seconds=1)
RETRY_CEILING = timedelta(minutes=1)

# So many sessions in a row that could not be read are an outage of their store: the others wait with them.
_FAILURES_OF_AN_OUTAGE = 3


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What one round did; `retry_at` is when a session whose view was incomplete may be asked again."""

    sessions: int
    incomplete: int
    retry_at: datetime | None


class Refresher:
    """Works through unprocessed hints, session by session; running it twice at once does no harm."""

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        inbox: Inbox,
        book: SourceBook,
        namespaces: Namespaces,
        notifications: Notifications,
        *,
        batch: int = 200,
        on_step: StepHook = ignore_step,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._inbox = inbox
        self._book = book
        self._namespaces = namespaces
        self._notifications = notifications
        self._verifier = Verifier(engine, clock, notifications, namespaces)
        self._batch = batch
        self._on_step = on_step
        self._sessions = _Waiting[tuple[str, str]](FIRST_RETRY, RETRY_CEILING)
        # Shorter: when the store is tried again it is by other sessions, should only those be unreadable.
        self._outages = _Waiting[str](FIRST_RETRY / 2, RETRY_CEILING / 2)

    async def round(self) -> Refreshed:
        """Refresh at most `batch` sessions whose hints are unprocessed and whose turn it is."""
        now = self._clock.now()
        away = self._outages.waiting(now)
        believed = [name for name in self._book.namespaces if self._book.believed(name) and name not in away]
        found = await self._inbox.unprocessed(believed, limit=self._batch, without=self._sessions.waiting(now))
        by_namespace: dict[str, list[Unprocessed]] = defaultdict(list)
        for item in found:
            by_namespace[item.namespace].append(item)
        incomplete = 0
        for namespace, items in by_namespace.items():
            incomplete += await self._refresh_namespace(namespace, items)
        moments = [*self._sessions.moments_after(now), *self._outages.moments_after(now)]
        return Refreshed(len(found), incomplete, min(moments, default=None))

    async def _refresh_namespace(self, namespace: str, items: Sequence[Unprocessed]) -> int:
        reader = EnrolledReader(self._engine, namespace)
        follow_up = [item.session_id for item in items if item.event_types <= FOLLOW_UP_EVENTS]
        held_open = await reader.has_open(follow_up) if follow_up else frozenset()
        idle = [item for item in items if item.event_types <= FOLLOW_UP_EVENTS and item.session_id not in held_open]
        if idle:
            await self._inbox.mark_processed(idle)
            self._on_step(Step.HINTS_PROCESSED)
        incomplete, failures, is_head_wanted = 0, 0, False
        for item in items:
            if item in idle:
                continue
            problems = await self._refresh_session(namespace, item, reader)
            failures = failures + 1 if Incomplete.STORE_ERROR in problems else 0
            if problems == {Incomplete.SESSION_NOT_FOUND}:
                is_head_wanted = True
                await self._done(item)
            elif problems:
                incomplete += 1
                self._sessions.put_off((namespace, item.session_id), self._clock.now())
            else:
                await self._done(item)
            if failures >= _FAILURES_OF_AN_OUTAGE:
                self._outages.put_off(namespace, self._clock.now())
                break
        if is_head_wanted:
            await self._namespaces.want_head([namespace])
        return incomplete

    async def _refresh_session(
        self, namespace: str, item: Unprocessed, reader: EnrolledReader
    ) -> frozenset[Incomplete]:
        """Apply what is pending in the session now; return why the view was incomplete, empty where it was whole."""
        source = self._book.believed(namespace)
        if not isinstance(source, RefreshesSessions):
            return frozenset({Incomplete.SESSION_NOT_FOUND})
        try:
            view = await source.session(item.session_id, known=reader)
        except SourceError as error:
            log.warning("refresh.failed", namespace=namespace, session_id=item.session_id, reason=error.reason)
            return frozenset({problem_of(error)})
        except SQLAlchemyError:  # our own database, which the source asks what is known
            raise
        except Exception as error:  # a bug of a source: this session waits, every other one goes on
            log.exception("source.failed_unexpectedly", namespace=namespace, error=type(error).__name__)
            return frozenset({Incomplete.STORE_ERROR})
        self._on_step(Step.SOURCE_ASKED)
        await self._apply(namespace, item.session_id, view)
        if isinstance(source, Observes):
            shown = {active.reference.attention_id for active in view.active}
            standing = await reader.open_in_session(item.session_id)
            missing = [enrolled for enrolled in standing if enrolled.reference.attention_id not in shown]
            asked = await self._verifier.ask(namespace, source, missing, door=Door.HINT)
            if not asked.is_answered:  # what became of it is asked again soon, not only by the next sweep
                return view.problems | {Incomplete.STORE_ERROR}
        return view.problems

    async def _apply(self, namespace: str, session_id: str, view: SessionView) -> None:
        await self._notifications.apply(namespace, view.active, door=Door.HINT)
        await record_sightings(
            self._engine,
            namespace,
            withheld=view.withheld,
            delegations=view.delegations,
            now=self._clock.now(),
        )
        if not view.problems:
            await forget_other_children(self._engine, namespace, session_id, view.delegations)

    async def _done(self, item: Unprocessed) -> None:
        await self._inbox.mark_processed([item])
        self._sessions.forget((item.namespace, item.session_id))
        self._outages.forget(item.namespace)
        self._on_step(Step.HINTS_PROCESSED)


class _Waiting(Generic[K]):
    """Until when each of some things is left alone; twice as long after each failure, up to the ceiling."""

    def __init__(self, first: timedelta, ceiling: timedelta) -> None:
        self._first = first
        self._ceiling = ceiling
        self._until: dict[K, tuple[int, datetime]] = {}

    def put_off(self, key: K, now: datetime) -> None:
        tries, _ = self._until.get(key, (0, now))
        self._until[key] = (tries + 1, now + min(self._first * 2 ** min(tries, 10), self._ceiling))

    def forget(self, key: K) -> None:
        self._until.pop(key, None)

    def waiting(self, now: datetime) -> Sequence[K]:
        # One whose turn came long ago is gone: somebody else did its work.
        self._until = {key: value for key, value in self._until.items() if value[1] > now - self._ceiling}
        return [key for key, (_, until) in self._until.items() if until > now]

    def moments_after(self, now: datetime) -> Sequence[datetime]:
        """Return the moments to come; what was due and not found is somebody else's, and nobody wakes up for it."""
        return [until for _, until in self._until.values() if until > now]
