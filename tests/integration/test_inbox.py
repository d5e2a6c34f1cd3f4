"""The inbox on both databases: each hint once, dead letters beside it, and exactly what was read is processed."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event as sqlalchemy_event
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock
from sinks.dead_letters import MAX_RAW_BYTES, dead_entry, read_dead_letters
from sinks.emit.hint import Hint
from sinks.inbox import HintKey, Inbox, NamespaceCounts
from sinks.tables import INBOX, INBOX_DEAD

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def hint(number: int = 1, *, session: str = "s-1", namespace: str = "prod", kind: str = "session.interrupted") -> Hint:
    return Hint(namespace, session, f"cayu_event_{number}", kind, AT)


@pytest.fixture
def inbox(engine: AsyncEngine) -> Inbox:
    return Inbox(engine, FrozenClock(AT))


async def test_hint_received_many_times_is_one_row(inbox: Inbox) -> None:
    first = await inbox.insert([hint(2), hint(1), hint(2)])
    second = await inbox.insert([hint(1), hint(3)])

    assert first == {HintKey("prod", "s-1", "cayu_event_1"), HintKey("prod", "s-1", "cayu_event_2")}
    assert second == {HintKey("prod", "s-1", "cayu_event_3")}
    assert (await inbox.counts()).received == 3


async def test_same_event_of_two_namespaces_is_two_rows(inbox: Inbox) -> None:
    await inbox.insert([hint(1), hint(1, namespace="test")])

    assert (await inbox.counts()).namespaces == {"prod": NamespaceCounts(1, 1), "test": NamespaceCounts(1, 1)}


async def test_unprocessed_sessions_come_oldest_first_with_all_their_types(inbox: Inbox) -> None:
    await inbox.insert([hint(1, session="s-2")])
    await inbox.insert([hint(2), hint(3, session="s-2", kind="session.resumed"), hint(4, namespace="other")])

    found = await inbox.unprocessed(["prod"], limit=10)

    assert [(item.session_id, sorted(item.event_types)) for item in found] == [
        ("s-2", ["session.interrupted", "session.resumed"]),
        ("s-1", ["session.interrupted"]),
    ]
    assert [item.session_id for item in await inbox.unprocessed(["prod"], limit=1)] == ["s-2"]
    rest = await inbox.unprocessed(["prod"], limit=1, without=[("prod", "s-2")])
    assert [item.session_id for item in rest] == ["s-1"]
    assert await inbox.unprocessed([], limit=10) == []


async def test_hint_that_comes_while_its_session_is_refreshed_stays_unprocessed(inbox: Inbox) -> None:
    await inbox.insert([hint(1)])
    read = await inbox.unprocessed(["prod"], limit=10)
    await inbox.insert([hint(2)])

    await inbox.mark_processed(read)
    await inbox.mark_processed(read)

    (left,) = await inbox.unprocessed(["prod"], limit=10)
    assert (len(left.ids), (await inbox.counts()).unprocessed) == (1, 1)
    await inbox.mark_processed([])


async def test_dead_letter_is_committed_with_the_hints_and_once(inbox: Inbox, engine: AsyncEngine) -> None:
    dead = dead_entry(b"1-1", {b"v": b"9", b"x": b"\xff\0\n"}, "unknown_version")

    await inbox.insert([hint(1)], [dead, dead])
    await inbox.insert([], [dead])

    (letter,) = await read_dead_letters(engine)
    assert (letter.stream_id, letter.reason, letter.received_at) == ("1-1", "unknown_version", AT)
    assert letter.text == r"1:v,1:9,1:x,3:\xff\x00\n,"
    assert (await inbox.counts()).dead == 1


async def test_dead_letter_of_a_huge_entry_is_bounded_and_says_how_long_it_was(
    inbox: Inbox, engine: AsyncEngine
) -> None:
    await inbox.insert([], [dead_entry(b"1-1", {b"session_id": b"s" * 1_000_000}, "field_too_long")])

    async with engine.connect() as connection:
        kept, was = (await connection.execute(select(func.length(INBOX_DEAD.c.raw), INBOX_DEAD.c.raw_bytes))).one()
    assert kept == MAX_RAW_BYTES
    assert was > 1_000_000


async def test_refused_dead_letter_leaves_no_hint_behind(inbox: Inbox) -> None:
    """One transaction: either all of a batch is there or nothing."""
    broken = dead_entry(b"1-1", {b"v": b"9"}, "r")
    object.__setattr__(broken, "reason", None)

    with pytest.raises(Exception, match=r"(?i)null"):
        await inbox.insert([hint(1)], [broken])

    assert await inbox.is_empty()


async def test_overlapping_batches_at_once_do_not_deadlock(inbox: Inbox) -> None:
    batches = [[hint(number) for number in order] for order in (range(300), range(299, -1, -1), range(100, 400))]

    inserted = await asyncio.gather(*(inbox.insert(batch) for batch in batches))

    assert sum(len(keys) for keys in inserted) == 400
    assert (await inbox.counts()).received == 400


async def test_received_instants_come_from_the_clock(engine: AsyncEngine) -> None:
    clock = FrozenClock(AT)
    inbox = Inbox(engine, clock)
    await inbox.insert([hint(1)])
    await clock.advance(timedelta(minutes=5))
    await inbox.mark_processed(await inbox.unprocessed(["prod"], limit=1))

    async with engine.connect() as connection:
        row = (await connection.execute(select(INBOX.c.occurred_at, INBOX.c.received_at, INBOX.c.processed_at))).one()
    assert tuple(row) == (AT, AT, AT + timedelta(minutes=5))


async def test_write_check_passes_on_a_writable_table_and_fails_without_it(inbox: Inbox, engine: AsyncEngine) -> None:
    await inbox.check_writable()
    async with engine.begin() as connection:
        await connection.execute(text("ALTER TABLE inbox RENAME TO inbox_away"))

    with pytest.raises(Exception, match="inbox"):
        await inbox.check_writable()


async def test_unprocessed_is_read_through_its_partial_index(sqlite_engine: AsyncEngine) -> None:
    inbox = Inbox(sqlite_engine, FrozenClock(AT))
    await inbox.insert([hint(number, session=f"s-{number}") for number in range(10)])
    statements: list[str] = []
    sqlalchemy_event.listen(
        sqlite_engine.sync_engine, "before_cursor_execute", lambda *args: statements.append(args[2]), named=False
    )
    await inbox.unprocessed(["prod"], limit=3)
    query = next(statement for statement in statements if "GROUP BY" in statement)

    async with sqlite_engine.connect() as connection:
        plan = str((await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", ("prod", 3, 0))).all())

    assert "ix_inbox_unprocessed" in plan
