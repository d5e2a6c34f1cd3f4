"""What the consumer does when the stream loses something: it goes on, says so, and a sweep follows."""

import pytest
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from config.steps import Step
from sinks.emit.names import GROUP, STREAM
from sinks.emit.redis_stream import RedisStreamSink
from sinks.incidents import Incident
from tests.support.consuming import add, consuming, drained, eventually, fields_of, received
from tests.support.events import make_event


async def test_lost_group_is_made_again_from_the_start_and_reported(
    valkey_url: str, redis: Redis, engine: AsyncEngine
) -> None:
    async with consuming(valkey_url, engine) as seen:
        await add(redis, fields_of(1))
        await seen.steps.reach(Step.REPLIED)

        await redis.xgroup_destroy(STREAM, GROUP)
        await add(redis, fields_of(2))
        await seen.steps.reach(Step.REPLIED, 2)

        assert (await seen.inbox.counts()).received == 2
        assert seen.gaps == 1
        assert await seen.incidents.counts() == {Incident.GROUP_LOST: 1}


async def test_flushed_redis_is_reported_and_the_next_emit_is_received(
    valkey_url: str, redis: Redis, sqlite_engine: AsyncEngine
) -> None:
    sink = RedisStreamSink(valkey_url, namespace="prod", timeout=10.0)
    async with consuming(valkey_url, sqlite_engine) as seen:
        await sink.emit(make_event(1))

        await redis.flushall()
        await sink.emit(make_event(2))

        assert (await seen.inbox.counts()).received == 2
        assert seen.gaps >= 1
    await sink.aclose()


async def test_group_missing_at_the_start_is_a_gap_only_if_hints_came_before(
    valkey_url: str, redis: Redis, sqlite_engine: AsyncEngine
) -> None:
    async with consuming(valkey_url, sqlite_engine) as first:
        await add(redis, fields_of(1))
        await first.steps.reach(Step.REPLIED)
    await redis.flushall()
    async with consuming(valkey_url, sqlite_engine) as second:
        await add(redis, fields_of(2))
        await second.steps.reach(Step.REPLIED)

    assert (first.gaps, second.gaps) == (0, 1)
    assert await second.incidents.counts() == {Incident.GROUP_MISSING: 1}


@pytest.mark.parametrize("how", ["own", "another's"])
async def test_pending_entry_that_was_trimmed_away_is_an_incident_not_a_crash(
    how: str, valkey_url: str, redis: Redis, sqlite_engine: AsyncEngine
) -> None:
    await redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    for number in range(3):
        await add(redis, fields_of(number))
    await redis.xreadgroup(GROUP, "test" if how == "own" else "gone", {STREAM: ">"}, count=2)
    await redis.xtrim(STREAM, maxlen=1, approximate=False)

    async with consuming(valkey_url, sqlite_engine) as seen:
        await eventually(lambda: drained(redis))
        await add(redis, fields_of(9))
        await eventually(lambda: received(seen.inbox.counts, 2))

        assert seen.gaps >= 1
        assert set(await seen.incidents.counts()) == {Incident.ENTRIES_TRIMMED}


async def test_entries_of_a_consumer_that_is_gone_are_taken_over(
    valkey_url: str, redis: Redis, sqlite_engine: AsyncEngine
) -> None:
    await redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    await add(redis, fields_of(1))
    await redis.xreadgroup(GROUP, "gone", {STREAM: ">"})

    async with consuming(valkey_url, sqlite_engine) as seen:
        await eventually(lambda: received(seen.inbox.counts, 1))
        await eventually(lambda: drained(redis))

    assert seen.sessions == {("prod", "s-1")}
