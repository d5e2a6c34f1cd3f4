"""A real consumer running inside a test, with short intervals and its steps to wait on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import SystemClock
from sinks.consumer import Cadence, Consumer
from sinks.emit.hint import Hint
from sinks.emit.names import GROUP, STREAM
from sinks.inbox import Inbox
from sinks.incidents import Incidents
from tests.support.events import AT
from tests.support.steps import Steps

QUICK = Cadence(
    block=timedelta(milliseconds=50),
    alive_every=timedelta(milliseconds=50),
    alive_ttl=timedelta(milliseconds=500),
    claim_every=timedelta(milliseconds=50),
    claim_idle=timedelta(milliseconds=100),
    trim_every=timedelta(milliseconds=50),
    first_retry=timedelta(milliseconds=10),
    last_retry=timedelta(milliseconds=50),
)


class Consuming:
    """What a running consumer has done: its steps, the sessions it told of, the gaps it reported."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.steps = Steps()
        self.sessions: set[tuple[str, str]] = set()
        self.gaps = 0
        self.inbox = Inbox(engine, SystemClock())
        self.incidents = Incidents(engine, SystemClock())

    def on_committed(self, sessions: frozenset[tuple[str, str]]) -> None:
        self.sessions |= sessions

    def on_gap(self) -> None:
        self.gaps += 1


@asynccontextmanager
async def consuming(
    url: str, engine: AsyncEngine, *, name: str = "test", cadence: Cadence = QUICK
) -> AsyncIterator[Consuming]:
    """Consume the server at `url` into `engine` while entered."""
    seen = Consuming(engine)
    stop = asyncio.Event()
    async with Redis.from_url(url) as client:
        consumer = Consumer(
            client,
            seen.inbox,
            seen.incidents,
            name=name,
            on_committed=seen.on_committed,
            on_gap=seen.on_gap,
            on_step=seen.steps,
            cadence=cadence,
        )
        task = asyncio.create_task(consumer.run(stop))
        try:
            yield seen
        finally:
            stop.set()
            await asyncio.wait_for(task, 10)


def fields_of(number: int = 1, *, session: str = "s-1", reply: str | None = None) -> dict[str, str]:
    return Hint("prod", session, f"cayu_event_{number}", "session.interrupted", AT).to_fields(reply)


async def eventually(condition: Callable[[], Awaitable[object]], seconds: float = 10.0) -> None:
    """Poll what only another server can tell."""
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.005)


async def add(redis: Redis, fields: Mapping[Any, Any]) -> None:
    await redis.xadd(STREAM, dict(fields))


async def pending(redis: Redis) -> int:
    return int((await redis.xpending(STREAM, GROUP))["pending"])


async def absent(redis: Redis, key: str) -> bool:
    return not await redis.exists(key)


async def drained(redis: Redis) -> bool:
    return await pending(redis) == 0


async def received(counts: Callable[[], Awaitable[object]], number: int) -> bool:
    return getattr(await counts(), "received", None) == number
