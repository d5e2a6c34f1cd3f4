"""`ack="aof"`: kept where the server fsyncs what it acknowledges, refused everywhere else."""

from collections.abc import Iterator

import pytest
import redis as redis_sync
from redis.asyncio import Redis

from sinks.emit.aof import RECHECK_SECONDS, AofPromise
from sinks.emit.errors import HintNotDurable, NotDurableReason
from sinks.emit.hint import Hint
from sinks.emit.names import STREAM
from sinks.emit.redis_stream import RedisStreamSink
from tests.support.events import AT, make_event
from tests.support.valkey import ValkeyServer

HINT = Hint("prod", "s", "e", "session.interrupted", AT)
OLDER = ("--rename-command", "WAITAOF", "")
FIT = ("--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[ValkeyServer]:
    started = ValkeyServer(*request.param)
    started.start()
    yield started
    started.stop()


@pytest.mark.parametrize("server", [FIT, (*OLDER, *FIT)], indirect=True, ids=["waitaof", "older"])
async def test_acknowledged_hint_survives_a_killed_server(server: ValkeyServer) -> None:
    sink = RedisStreamSink(server.url, namespace="prod", ack="aof", timeout=5.0)
    assert await sink.probe()

    for number in range(5):
        await sink.emit(make_event(number))
    server.kill()
    server.start()

    with redis_sync.Redis.from_url(server.url) as client:
        assert client.xlen(STREAM) == 5
    await sink.aclose()


@pytest.mark.parametrize(
    "server",
    [
        ("--appendonly", "no"),
        (*OLDER, "--appendonly", "no"),
        (*OLDER, "--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction"),
        (*OLDER, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "allkeys-lru"),
        (*OLDER, *FIT, "--rename-command", "CONFIG", ""),
    ],
    indirect=True,
    ids=["off", "older-off", "older-everysec", "older-evicting", "older-unknown"],
)
async def test_server_that_cannot_keep_the_promise_is_refused(server: ValkeyServer) -> None:
    sink = RedisStreamSink(server.url, namespace="prod", ack="aof", timeout=5.0)

    with pytest.raises(HintNotDurable) as failed:
        await sink.emit(make_event())

    assert failed.value.reason is NotDurableReason.NO_AOF
    assert not await sink.probe()
    await sink.aclose()


@pytest.mark.parametrize("server", [(*OLDER, *FIT)], indirect=True, ids=["older"])
async def test_older_server_is_looked_at_again_periodically(server: ValkeyServer) -> None:
    seconds = [0.0]
    promise = AofPromise(timeout_seconds=5.0, now=lambda: seconds[0])
    async with Redis.from_url(server.url) as client:
        await promise.add(client, HINT)
        await client.config_set("appendfsync", "everysec")
        await promise.add(client, HINT)  # still trusted

        seconds[0] += RECHECK_SECONDS

        with pytest.raises(HintNotDurable):
            await promise.add(client, HINT)


@pytest.mark.parametrize("server", [FIT], indirect=True, ids=["waitaof"])
async def test_append_only_file_turned_off_at_run_time_is_noticed_by_the_next_emit(server: ValkeyServer) -> None:
    sink = RedisStreamSink(server.url, namespace="prod", ack="aof", timeout=5.0)
    await sink.emit(make_event())
    with redis_sync.Redis.from_url(server.url) as client:
        client.config_set("appendonly", "no")

    with pytest.raises(HintNotDurable) as failed:
        await sink.emit(make_event(2))

    assert failed.value.reason is NotDurableReason.NO_AOF
    await sink.aclose()
