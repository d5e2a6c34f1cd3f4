"""Names in the consumer group that nobody uses any more go; one that still holds an entry never does."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from sinks.emit.names import GROUP, STREAM
from sinks.hint_stream import GroupLost, HintStream
from tests.support.consuming import QUICK, add, consuming, eventually, fields_of

BRIEF = timedelta(milliseconds=5)


async def names(redis: Redis) -> set[str]:
    found: list[dict[str, Any]] = await redis.xinfo_consumers(STREAM, GROUP)
    return {consumer["name"].decode() for consumer in found}


async def are_all_idle(redis: Redis) -> bool:
    return all(consumer["idle"] > 10 for consumer in await redis.xinfo_consumers(STREAM, GROUP))


async def test_idle_names_go_unless_they_hold_an_entry_or_are_ours(redis: Redis) -> None:
    await redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    await add(redis, fields_of(1))
    await redis.xreadgroup(GROUP, "holds-one", {STREAM: ">"})
    for name in ("unused", "ours"):
        await redis.xgroup_createconsumer(STREAM, GROUP, name)
    await eventually(lambda: are_all_idle(redis))
    stream = HintStream(redis, "ours")

    young = await stream.forget_idle(idle=timedelta(hours=1))
    forgotten = await stream.forget_idle(idle=BRIEF)

    assert (young, forgotten) == (0, 1)
    assert await names(redis) == {"holds-one", "ours"}
    assert (await redis.xpending(STREAM, GROUP))["pending"] == 1


async def test_consumer_takes_over_what_a_gone_name_held_and_then_deletes_it(
    valkey_url: str, redis: Redis, sqlite_engine: AsyncEngine
) -> None:
    await redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    await add(redis, fields_of(1))
    await redis.xreadgroup(GROUP, "gone", {STREAM: ">"})
    cadence = replace(QUICK, forget_every=timedelta(milliseconds=20), forget_idle=timedelta(milliseconds=50))

    async def is_alone() -> bool:
        return await names(redis) == {"test"}

    async with consuming(valkey_url, sqlite_engine, cadence=cadence) as seen:
        await eventually(is_alone)

    assert (await seen.inbox.counts()).received == 1


async def test_missing_group_is_found_here_too(redis: Redis) -> None:
    with pytest.raises(GroupLost):
        await HintStream(redis, "ours").forget_idle(idle=BRIEF)

    await redis.xadd(STREAM, {"a": "b"})
    with pytest.raises(GroupLost):
        await HintStream(redis, "ours").forget_idle(idle=BRIEF)


async def test_server_that_runs_no_script_for_us_keeps_its_names(valkey_url: str, redis: Redis) -> None:
    await redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    await redis.xgroup_createconsumer(STREAM, GROUP, "unused")
    await eventually(lambda: are_all_idle(redis))
    await redis.acl_setuser(
        "plain", enabled=True, passwords=["+secret"], keys=["*"], categories=["+@all", "-@scripting"]
    )
    async with Redis.from_url(valkey_url, username="plain", password="secret") as client:
        assert await HintStream(client, "ours").forget_idle(idle=BRIEF) == 0
    await redis.acl_deluser("plain")

    assert await names(redis) == {"unused"}
