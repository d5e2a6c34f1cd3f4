"""Handbell's side of a proof: one bounded invocation of each of its ways to the truth, and what is known after it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from cayu.sessions import EventQuery

from reconciler.namespaces import Namespaces
from reconciler.notifications import Notifications
from reconciler.refresh import Refreshed, Refresher
from reconciler.routes import Routing
from reconciler.source_book import Entry, SourceBook
from reconciler.sources.cayu import TYPE, Options, build
from reconciler.sources.services import SourceServices
from reconciler.sweep import Mode, Pass, Sweeper
from sinks.emit.recovery_loop import Recovery, Round
from sinks.emit.wakeup import WAKE_UP_EVENTS
from sinks.inbox_sink import InboxSink
from worker.proof.agent import runtime
from worker.proof.faults import CrashingNotifications
from worker.proof.folder import NAMESPACE, SESSION_ID, House, ProofError, opened, paused_folder

# One call of the runtime's recovery handles at most as many events.
_RECOVERY_LIMIT = 100

# Nothing waits for the next pass here: every command is one.
_NEVER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Consumed:
    """What one invocation did."""

    recovery: Round
    refreshed: Refreshed
    swept: Pass

    @property
    def is_complete(self) -> bool:
        """Answer whether it saw everything that is pending."""
        return self.swept.is_complete and not self.refreshed.incomplete


@dataclass(frozen=True, slots=True)
class Late:
    """What became of the opening event that came once more: as it was, and as one that was delayed."""

    duplicates_refused: int
    refreshed: Refreshed


async def consume_in(path: Path, *, crashes_after_accept: bool = False) -> Consumed:
    """Recover events, refresh the sessions that hints name, sweep; each once and bounded.

    Several at once do no harm. Ends the process with 18 where asked to and a notification was inserted.
    """
    async with opened(paused_folder(path)) as house:
        sink = InboxSink(house.inbox, namespace=NAMESPACE)
        async with runtime(house.folder.store, sink) as (_store, app):
            recovery = await Recovery(app, sink, limit=_RECOVERY_LIMIT).round()
        kind = CrashingNotifications if crashes_after_accept else Notifications
        async with _reconciling(house, kind) as (refresher, sweeper):
            refreshed = await refresher.round()
            swept = await sweeper.sweep(NAMESPACE, Mode.FULL)
            assert swept is not None, "a sweeper that takes no lease is never refused"
            return Consumed(recovery, refreshed, swept)


async def hint_late_in(path: Path) -> Late:
    """Emit the session's opening event again, once as it was and once as if it had been delayed, and refresh."""
    async with opened(paused_folder(path)) as house:
        sink = InboxSink(house.inbox, namespace=NAMESPACE)
        async with runtime(house.folder.store, sink) as (store, _app):
            opening = await _opening(store)
        before = (await house.inbox.counts()).received
        await sink.emit(opening)
        refused = 1 - ((await house.inbox.counts()).received - before)
        await sink.emit(opening.model_copy(update={"id": f"{opening.id}-late"}))
        async with _reconciling(house, Notifications) as (refresher, _sweeper):
            return Late(refused, await refresher.round())


@asynccontextmanager
async def _reconciling(house: House, kind: type[Notifications]) -> AsyncIterator[tuple[Refresher, Sweeper]]:
    """Give what reads the truth, put together as the worker does; it only reads the runtime's store."""
    services = SourceServices(house.clock, house.folder.path)
    source = build(NAMESPACE, Options.model_validate({"store": str(house.folder.store)}), services)
    namespaces = Namespaces(house.engine, house.clock)
    book = SourceBook({NAMESPACE: Entry(NAMESPACE, TYPE, source, _NEVER, _NEVER)}, namespaces)
    nobody = Routing((), {})
    writer = kind(house.engine, house.clock, lambda: nobody)
    try:
        await book.recheck(NAMESPACE)
        yield (
            Refresher(house.engine, house.clock, house.inbox, book, namespaces, writer),
            # A consumer that crashed would keep its lease for a minute; that no lease is needed is what is proven.
            Sweeper(house.engine, house.clock, book, namespaces, writer, takes_lease=False),
        )
    finally:
        await book.close()


async def _opening(store: Any) -> Any:
    """Return the first event of the session that is a hint, as a sink received it."""
    records = await store.query_events(EventQuery(session_id=SESSION_ID))
    for record in records:
        if str(record.event.type) in WAKE_UP_EVENTS:
            # The identity that Cayu gives an event on its way to a sink.
            return record.event.model_copy(update={"id": f"cayu_event_{record.sequence}"})
    raise ProofError("the session has no opening event yet: run `handbell proof pause` in a fresh folder")
