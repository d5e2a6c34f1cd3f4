"""The consumer on a real Valkey and real databases: acknowledged means committed, and nothing stops it."""

import asyncio
import time
from datetime import timedelta
from typing import Any

from redis.asyncio import Redis
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from structlog.testing import capture_logs

from config.steps import Step
from sinks.consumer import Cadence
from sinks.dead_letters import read_dead_letters
from sinks.emit.names import CONSUMER_KEY, STREAM, reply_key
from sinks.emit.redis_stream import RedisStreamSink
from tests.support.consuming import QUICK, absent, add, consuming, eventually, fields_of, pending
from tests.support.events import make_event
from tests.support.valkey import ValkeyServer

TOKEN = "0123456789abcdef" * 2


async def test_event_received_five_times_out_of_order_is_one_row(
    valkey_url: str, redis: Redis, engine: AsyncEngine
) -> None:
    for number in (3, 1, 2, 1, 3, 1, 1, 2, 1):
        await add(redis, fields_of(number))
    async with consuming(valkey_url, engine) as seen:
        await seen.steps.reach(Step.REPLIED)

        assert (await seen.inbox.counts()).received == 3
        assert seen.sessions == {("prod", "s-1")}
        assert await pending(redis) == 0


async def test_emit_is_answered_after_the_commit_and_again_for_a_duplicate(
    valkey_url: str, engine: AsyncEngine
) -> None:
    sink = RedisStreamSink(valkey_url, namespace="prod", timeout=10.0)
    async with consuming(valkey_url, engine) as seen:
        await sink.emit(make_event(1))
        assert (await seen.inbox.counts()).received == 1

        await sink.emit(make_event(1))
        await asyncio.gather(*(sink.emit(make_event(number)) for number in range(100)))

        assert (await seen.inbox.counts()).received == 100
    await sink.aclose()


async def test_reply_nobody_fetches_goes_by_itself(valkey_url: str, redis: Redis, sqlite_engine: AsyncEngine) -> None:
    await add(redis, fields_of(reply=TOKEN))
    async with consuming(valkey_url, sqlite_engine) as seen:
        await seen.steps.reach(Step.REPLIED)

    assert 0 < await redis.pttl(reply_key(TOKEN)) <= 10_000


async def test_reply_key_that_holds_something_else_does_not_stop_the_others(
    valkey_url: str, redis: Redis, sqlite_engine: AsyncEngine
) -> None:
    await redis.set(reply_key(TOKEN), b"a string")
    await add(redis, fields_of(1, reply=TOKEN))
    await add(redis, fields_of(2, reply=TOKEN[::-1]))
    async with consuming(valkey_url, sqlite_engine) as seen:
        await seen.steps.reach(Step.REPLIED)

    assert await redis.exists(reply_key(TOKEN[::-1])) == 1
    assert await pending(redis) == 0


MALFORMED: dict[str, dict[bytes, bytes]] = {
    "missing_field": {b"v": b"1", b"namespace": b"prod"},
    "not_utf8": {b"session_id": b"\xff\xfe"},
    "nul_character": {b"session_id": b"a\0b"},
    "field_too_long": {b"event_id": b"e" * 1_000_000},
    "unknown_version": {b"v": b"2"},
    "bad_instant": {b"occurred_at": b"yesterday"},
}


async def test_malformed_entries_of_every_kind_are_kept_and_the_rest_is_received(
    valkey_url: str, redis: Redis, engine: AsyncEngine
) -> None:
    good = {name.encode(): value.encode() for name, value in fields_of(1).items()}
    for reason, changes in MALFORMED.items():
        await add(redis, changes if reason == "missing_field" else good | changes)
    await add(redis, {b"": b""})
    await add(redis, good)

    async with consuming(valkey_url, engine) as seen:
        await seen.steps.reach(Step.REPLIED)
        await add(redis, fields_of(2))
        await seen.steps.reach(Step.REPLIED, 2)

        counts = await seen.inbox.counts()
    assert (counts.received, counts.dead) == (2, len(MALFORMED) + 1)
    assert {letter.reason for letter in await read_dead_letters(engine)} == set(MALFORMED)
    assert await pending(redis) == 0


async def test_row_the_database_refuses_is_a_dead_letter_and_the_others_are_committed(
    valkey_url: str, redis: Redis, engine: AsyncEngine
) -> None:
    await refuse_session(engine, "poison")
    for number in range(40):
        session = "poison" if number in {7, 23} else "s-1"
        await add(redis, fields_of(number, session=session))
    async with consuming(valkey_url, engine) as seen:
        await seen.steps.reach(Step.REPLIED)

        counts = await seen.inbox.counts()
    assert (counts.received, counts.dead) == (38, 2)
    assert {letter.reason for letter in await read_dead_letters(engine)} == {"refused_by_database"}
    assert await pending(redis) == 0


async def refuse_session(engine: AsyncEngine, session_id: str) -> None:
    """Make the database refuse the rows of one session, as a broken constraint would."""
    async with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            await connection.execute(
                text(
                    "CREATE TRIGGER refuse BEFORE INSERT ON inbox WHEN NEW.session_id = 'poison' "
                    "BEGIN SELECT RAISE(ABORT, 'refused'); END"
                )
            )
        else:
            await connection.execute(text("ALTER TABLE inbox ADD CHECK (session_id <> 'poison')"))
    assert session_id == "poison"


async def test_unusable_database_acknowledges_nothing_and_loses_nothing(
    valkey_url: str, redis: Redis, engine: AsyncEngine
) -> None:
    with capture_logs() as logs:
        async with consuming(valkey_url, engine) as seen:
            await add(redis, fields_of(1))
            await seen.steps.reach(Step.REPLIED)
            async with engine.begin() as connection:
                await connection.execute(text("ALTER TABLE inbox RENAME TO inbox_away"))

            await add(redis, fields_of(2, reply=TOKEN))
            await seen.steps.reach(Step.RECEIVED, 2)
            await eventually(lambda: absent(redis, CONSUMER_KEY))
            assert await pending(redis) == 1
            assert await absent(redis, reply_key(TOKEN))

            async with engine.begin() as connection:
                await connection.execute(text("ALTER TABLE inbox_away RENAME TO inbox"))
            await seen.steps.reach(Step.REPLIED, 2)
            assert (await seen.inbox.counts()).received == 2
    events = [entry["event"] for entry in logs if entry["event"].startswith("inbox.")]
    assert events == ["inbox.lost", "inbox.restored"]


async def test_emitters_see_a_consumer_only_while_it_can_write(
    valkey_url: str, redis: Redis, sqlite_engine: AsyncEngine
) -> None:
    async with consuming(valkey_url, sqlite_engine):
        await eventually(lambda: redis.exists(CONSUMER_KEY))
        async with sqlite_engine.begin() as connection:
            await connection.execute(text("ALTER TABLE inbox RENAME TO inbox_away"))

        await eventually(lambda: absent(redis, CONSUMER_KEY))


async def test_redis_that_dies_and_returns_is_waited_for_and_said_once(
    own_valkey: ValkeyServer, sqlite_engine: AsyncEngine
) -> None:
    with capture_logs() as logs:
        async with consuming(own_valkey.url, sqlite_engine) as seen:
            async with Redis.from_url(own_valkey.url) as client:
                await add(client, fields_of(1))
                await seen.steps.reach(Step.REPLIED)
            own_valkey.kill()
            await asyncio.sleep(0.2)
            own_valkey.start()
            async with Redis.from_url(own_valkey.url) as client:
                await add(client, fields_of(2))
                await seen.steps.reach(Step.REPLIED, 2)

            assert (await seen.inbox.counts()).received == 2
    assert [entry["event"] for entry in logs] == ["stream.lost", "stream.restored"]


async def test_consumer_that_is_told_to_stop_while_redis_is_away_stops(
    own_valkey: ValkeyServer, sqlite_engine: AsyncEngine
) -> None:
    slow = Cadence(first_retry=timedelta(minutes=1))
    own_valkey.kill()

    started = time.perf_counter()
    async with consuming(own_valkey.url, sqlite_engine, cadence=slow):
        await asyncio.sleep(0.05)

    assert time.perf_counter() - started < 5


async def test_idle_consumer_stops_at_once(valkey_url: str, sqlite_engine: AsyncEngine, redis: Redis) -> None:
    slow = Cadence(block=timedelta(minutes=1))
    async with consuming(valkey_url, sqlite_engine, cadence=slow):
        await eventually(lambda: redis.exists(CONSUMER_KEY))
        started = time.perf_counter()

    assert time.perf_counter() - started < 5


async def test_trimming_keeps_what_another_group_still_needs(
    valkey_url: str, redis: Redis, sqlite_engine: AsyncEngine
) -> None:
    await redis.xgroup_create(STREAM, "another", id="0", mkstream=True)
    for number in range(10):
        await add(redis, fields_of(number))
    await redis.xreadgroup("another", "c", {STREAM: ">"}, count=4)

    async with consuming(valkey_url, sqlite_engine) as seen:
        await seen.steps.reach(Step.REPLIED)
        await asyncio.sleep(3 * QUICK.trim_every.total_seconds())
        assert await redis.xlen(STREAM) == 10

        ids = [entry["message_id"] for entry in await redis.xpending_range(STREAM, "another", "-", "+", 10)]
        await redis.xack(STREAM, "another", *ids[:3])
        await eventually(lambda: has_length(redis, 7))

        (first,) = await redis.xrange(STREAM, count=1)
    assert first[0] == ids[3]


async def has_length(redis: Redis, length: int) -> bool:
    return int(await redis.xlen(STREAM)) == length


async def test_hundred_thousand_hints_are_received_once_and_leave_a_bounded_stream(
    valkey_url: str, redis: Redis, sqlite_engine: AsyncEngine
) -> None:
    count = 100_000
    await fill(redis, count)

    started = time.perf_counter()
    async with consuming(valkey_url, sqlite_engine) as seen:
        await eventually(lambda: drained_stream(redis), seconds=60)
        seconds = time.perf_counter() - started
        counts = await seen.inbox.counts()

    assert counts.received == count
    assert await redis.xlen(STREAM) <= 1
    assert count / seconds > 2_000, f"{count / seconds:.0f} hints a second"


async def fill(redis: Any, count: int) -> None:
    for begin in range(0, count, 2000):
        pipeline = redis.pipeline(transaction=False)
        for number in range(begin, begin + 2000):
            pipeline.xadd(STREAM, dict(fields_of(number, session=f"s-{number % 5000}")))
        await pipeline.execute()


async def drained_stream(redis: Redis) -> bool:
    await asyncio.sleep(0.05)
    return int(await redis.xlen(STREAM)) <= 1
