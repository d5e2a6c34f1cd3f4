"""What comes in from a real runtime by the stream and by sweeps: the wake-up set, withheld sessions, navigation."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cayu.events import Event
from cayu.observability import EventSink
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock
from reconciler.sources.cayu import CayuSource, Options
from reconciler.sources.cayu_target import locate
from reconciler.sources.protocol import Known, SessionView
from reconciler.status import read_status
from reconciler.sweep import Mode
from reconciler.tables import NOTIFICATIONS
from sinks.emit.redis_stream import RedisStreamSink
from sinks.emit.wakeup import FOLLOW_UP_EVENTS, WAKE_UP_EVENTS
from sinks.tables import INBOX
from tests.support.cayu_stores import CayuStore
from tests.support.consuming import consuming
from tests.support.paging_source import BEGINNING
from tests.support.reconciling import NAMESPACE, Reconciling
from worker.scripted.runtime import close_store, make_app, open_store, pause
from worker.scripted.settling import current_action, settle

BOTH_DOORS = ("hint", "sweep")


class Asked(CayuSource):
    """The real source; remembers which sessions it was asked about."""

    def __init__(self, url: str, **options: Any) -> None:
        table = Options.model_validate({"store": url, **options})
        super().__init__(NAMESPACE, table, locate(table, Path("/")), FrozenClock(BEGINNING))
        self.sessions: list[str] = []

    async def session(self, session_id: str, *, known: Known) -> SessionView:
        self.sessions.append(session_id)
        return await super().session(session_id, known=known)


class Recording(EventSink):
    """Passes events on and remembers them."""

    def __init__(self, inner: EventSink) -> None:
        self._inner = inner
        self.events: list[Event] = []

    async def emit(self, event: Event) -> None:
        self.events.append(event)
        await self._inner.emit(event)

    async def repeat(self, session_id: str, types: frozenset[str]) -> int:
        """Send the session's events of these types once more, as new ones; return how many."""
        again = [event for event in self.events if event.session_id == session_id and str(event.type) in types]
        for event in again:
            await self._inner.emit(event.model_copy(update={"id": f"{event.id}-again"}))
        return len(again)


def reconciling_with(engine: AsyncEngine, source: Any) -> Reconciling:
    return Reconciling(engine, source)


async def knock(reconciling: Reconciling, door: str, session_ids: list[str]) -> None:
    """Let the sessions' state come in by one of the doors."""
    if door == "sweep":
        done = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
        assert done is not None
        assert done.is_complete
        return
    for session_id in session_ids:
        await reconciling.hint(session_id, f"event-{reconciling.clock.now().timestamp()}")
    await reconciling.refresher.round()
    assert (await reconciling.inbox.counts()).unprocessed == 0


async def enrolled_sessions(reconciling: Reconciling) -> list[str]:
    return sorted(row.session_id for row in await reconciling.rows(select(NOTIFICATIONS.c.session_id)))


async def source_status(reconciling: Reconciling) -> dict[str, Any]:
    status = await read_status(reconciling.engine, reconciling.book, [])
    [shown] = status["sources"]
    return dict(shown)


async def test_exactly_the_wake_up_events_of_a_real_run_arrive_and_follow_ups_refresh_only_who_holds_a_request(
    valkey_url: str, sqlite_engine: AsyncEngine, tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "cayu.db"))
    source = Asked(str(tmp_path / "cayu.db"))
    reconciling = reconciling_with(sqlite_engine, source)
    stream = RedisStreamSink(valkey_url, namespace=NAMESPACE, timeout=10.0)
    sink = Recording(stream)
    app = make_app(store, sinks=[sink])
    async with consuming(valkey_url, sqlite_engine):
        await pause(app, "user_input", "ask")
        await pause(app, "tool_approval", "deploy")
        await reconciling.refresher.round()
        await settle(app, await current_action(store, "deploy"), "approve")
        await reconciling.refresher.round()
        first, source.sessions = source.sessions, []

        repeated = [await sink.repeat(session_id, FOLLOW_UP_EVENTS) for session_id in ("deploy", "ask")]
        await reconciling.refresher.round()

    rows = await reconciling.rows(select(INBOX))
    arrived = {(row.session_id, row.event_id, row.event_type) for row in rows if not row.event_id.endswith("-again")}
    given = {(event.session_id, event.id, str(event.type)) for event in sink.events}
    assert arrived == {one for one in given if one[2] in WAKE_UP_EVENTS}
    assert {kind for _, _, kind in given} - WAKE_UP_EVENTS, "a run gives other events too"
    assert {"session.awaiting_user_input", "session.interrupted"} <= {row.event_type for row in rows}
    assert (sorted(first), await enrolled_sessions(reconciling)) == (["ask", "deploy", "deploy"], ["ask", "deploy"])
    assert min(repeated) > 0
    assert source.sessions == ["ask"]
    assert all(row.processed_at for row in rows)
    await source.close()
    await stream.aclose()
    await close_store(store)


@pytest.mark.parametrize("door", BOTH_DOORS)
async def test_withheld_sessions_enter_by_no_door_and_are_counted(
    door: str, cayu_store: CayuStore, sqlite_engine: AsyncEngine
) -> None:
    parent_of = {action.session.id: action.session.parent_session_id for action in await cayu_store.actions()}
    quiet = sorted({"trial", "quiet"} | {child for child, parent in parent_of.items() if parent == "quiet"})
    source = Asked(cayu_store.url)
    reconciling = reconciling_with(sqlite_engine, source)

    await knock(reconciling, door, [*parent_of])
    await reconciling.clock.advance(timedelta(minutes=1))
    await knock(reconciling, door, [*parent_of])
    shown = await source_status(reconciling)
    await source.close()

    enrolled = await enrolled_sessions(reconciling)
    assert "ask" in enrolled
    assert not set(quiet) & set(enrolled)
    assert len(quiet) == 3
    assert shown["withheld"] == 2, "the parent that opted out has no request of its own"


@pytest.mark.parametrize("door", BOTH_DOORS)
async def test_navigation_is_shown_where_the_child_is_left_out_and_goes_when_it_no_longer_holds(
    door: str, cayu_store: CayuStore, engine: AsyncEngine
) -> None:
    source = Asked(cayu_store.url, scope={"parents": ["ask", "parent"]})
    reconciling = reconciling_with(engine, source)

    await knock(reconciling, door, ["parent", "ask"])
    waiting = (await source_status(reconciling))["delegations"]
    await cayu_store.settle("parent", "answer")
    await reconciling.clock.advance(timedelta(minutes=1))
    await knock(reconciling, door, ["parent", "ask"])
    after = (await source_status(reconciling))["delegations"]
    await source.close()

    [way] = waiting
    assert set(way) == {"session_id", "child_session_id"}
    assert way["session_id"] == "parent"
    assert after == []
    assert await enrolled_sessions(reconciling) == ["ask"]
    assert await reconciling.rows(select(NOTIFICATIONS).where(NOTIFICATIONS.c.session_id == "parent")) == []


async def test_navigation_is_not_shown_where_the_child_is_enrolled(
    cayu_store: CayuStore, sqlite_engine: AsyncEngine
) -> None:
    source = Asked(cayu_store.url)
    reconciling = reconciling_with(sqlite_engine, source)

    await knock(reconciling, "sweep", [])
    await knock(reconciling, "hint", ["parent", "nested"])
    shown = await source_status(reconciling)
    await source.close()

    assert shown["delegations"] == []
    assert len(await enrolled_sessions(reconciling)) > 4


async def test_incomplete_pass_forgets_no_navigation(cayu_store: CayuStore, sqlite_engine: AsyncEngine) -> None:
    source = Asked(cayu_store.url, scope={"parents": ["parent"]})
    reconciling = reconciling_with(sqlite_engine, source)
    await knock(reconciling, "sweep", [])
    await reconciling.clock.advance(timedelta(minutes=1))
    await cayu_store.break_down()

    done = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert done is not None
    assert not done.is_complete
    assert len((await source_status(reconciling))["delegations"]) == 1
    await source.close()
