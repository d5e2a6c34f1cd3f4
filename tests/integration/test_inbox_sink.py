"""The direct sink: a real pause becomes rows of the inbox, and a refused row is the runtime's to retry."""

from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import SystemClock
from sinks.emit.wakeup import WAKE_UP_EVENTS
from sinks.inbox import Inbox
from sinks.inbox_sink import InboxSink
from tests.support.events import make_event
from worker.scripted.runtime import CONTENT_MARK, close_store, make_app, open_store, pause


async def test_real_pause_is_in_the_inbox_when_the_run_pauses(engine: AsyncEngine, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "cayu.db"))
    inbox = Inbox(engine, SystemClock())

    await pause(make_app(store, sinks=[InboxSink(inbox, namespace="prod")]), "tool_approval", "s-1")

    (waiting,) = await inbox.unprocessed(["prod"], limit=10)
    assert waiting.session_id == "s-1"
    assert {"tool.call.approval_requested", "session.interrupted"} <= waiting.event_types <= WAKE_UP_EVENTS
    async with engine.connect() as connection:
        assert CONTENT_MARK not in str((await connection.execute(text("SELECT * FROM inbox"))).all())
    await close_store(store)


async def test_same_event_twice_is_one_row_and_others_are_dropped(sqlite_engine: AsyncEngine) -> None:
    inbox = Inbox(sqlite_engine, SystemClock())
    sink = InboxSink(inbox, namespace="prod")

    for event in (make_event(1), make_event(1), make_event(2, "tool.call.started")):
        await sink.emit(event)

    assert (await inbox.counts()).received == 1
    assert await sink.probe()


async def test_database_that_refuses_makes_emit_raise(sqlite_engine: AsyncEngine) -> None:
    sink = InboxSink(Inbox(sqlite_engine, SystemClock()), namespace="prod")
    async with sqlite_engine.begin() as connection:
        await connection.execute(text("DROP TABLE inbox"))

    with pytest.raises(SQLAlchemyError):
        await sink.emit(make_event(1))

    assert not await sink.probe()
