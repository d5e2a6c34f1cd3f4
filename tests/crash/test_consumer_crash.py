"""A consumer killed with -9 at each of its steps loses nothing and duplicates nothing."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from config.steps import Step
from sinks.emit.errors import HintNotDurable
from sinks.emit.names import GROUP, STREAM
from sinks.emit.redis_stream import RedisStreamSink
from tests.support.consuming import consuming
from tests.support.events import make_event

ROOT = Path(__file__).parents[2]

CONSUMER = """
import asyncio, sys
from pathlib import Path
from redis.asyncio import Redis
from config.clock import SystemClock
from config.database import create_engine, database_url
from config.steps import Step, kill_at
from sinks.consumer import Consumer
from sinks.inbox import Inbox
from sinks.incidents import Incidents

async def main(redis_url, url, step):
    engine = create_engine(database_url(url, relative_to=Path.cwd()))
    inbox, incidents = Inbox(engine, SystemClock()), Incidents(engine, SystemClock())
    consumer = Consumer(
        Redis.from_url(redis_url), inbox, incidents, name="test",
        on_committed=lambda sessions: None, on_gap=lambda: None, on_step=kill_at(Step(step)),
    )
    await consumer.run(asyncio.Event())

asyncio.run(main(*sys.argv[1:]))
"""


def start_consumer(valkey_url: str, database_url: str, step: Step) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CONSUMER, valkey_url, database_url, step.value], cwd=ROOT)


async def emit_until_told(sink: RedisStreamSink, number: int) -> int:
    """Emit one event as the runtime does, again while it is not acknowledged; return the attempts."""
    attempts = 0
    while True:
        attempts += 1
        try:
            await sink.emit(make_event(number))
        except HintNotDurable:
            await asyncio.sleep(0.05)
        else:
            return attempts


@pytest.mark.parametrize("step", [Step.RECEIVED, Step.INBOX_COMMITTED, Step.REPLIED])
async def test_consumer_killed_at_any_step_loses_and_duplicates_nothing(
    step: Step, valkey_url: str, any_database_url: str, redis: Redis, engine: AsyncEngine
) -> None:
    """RECEIVED is before the commit, INBOX_COMMITTED between commit and both XACK and reply."""
    sinks = [RedisStreamSink(valkey_url, namespace="prod", timeout=1.0) for _ in range(5)]
    victim = start_consumer(valkey_url, any_database_url, step)
    emitting = asyncio.gather(*(emit_until_told(sink, number) for number, sink in enumerate(sinks)))
    assert await asyncio.to_thread(victim.wait) == -signal.SIGKILL

    async with consuming(valkey_url, engine) as seen:
        await asyncio.wait_for(emitting, 30)
        while (await redis.xpending(STREAM, GROUP))["pending"]:
            await asyncio.sleep(0.005)

        counts = await seen.inbox.counts()
        waiting = await seen.inbox.unprocessed(["prod"], limit=10)
    assert (counts.received, counts.dead) == (5, 0)
    assert [len(item.ids) for item in waiting] == [5]
    for sink in sinks:
        await sink.aclose()


async def test_frozen_consumer_makes_emit_time_out_within_its_bound_and_nothing_is_lost(
    valkey_url: str, any_database_url: str, redis: Redis, engine: AsyncEngine
) -> None:
    sink = RedisStreamSink(valkey_url, namespace="prod", timeout=0.3)
    frozen = start_consumer(valkey_url, any_database_url, Step.SENT)  # a step it never reaches
    try:
        while not await redis.exists("handbell:consumer"):
            await asyncio.sleep(0.01)
        frozen.send_signal(signal.SIGSTOP)

        started = asyncio.get_running_loop().time()
        with pytest.raises(HintNotDurable):
            await sink.emit(make_event(1))

        assert asyncio.get_running_loop().time() - started < 0.3 + 0.3
    finally:
        frozen.kill()
        frozen.wait()
    async with consuming(valkey_url, engine) as seen:
        while (await seen.inbox.counts()).received == 0:
            await asyncio.sleep(0.005)
    await sink.aclose()
