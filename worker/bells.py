"""Rings the bell of a stage: work is there, in this process or in another one.

A commit rings; whoever works on the stage waits for the bell or for its own next moment. Inside a process that is
an event; between processes a capped Redis list that the others read blockingly. A ring that is lost (Redis is down,
another process took it) costs latency until the next regular look, never a request.
"""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from enum import StrEnum
from typing import cast

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.clock import Clock

log = structlog.get_logger()

# More rings than this are one: whoever comes finds all the work.
LONGEST_LIST = 8

# How long one blocking read lasts; below the socket timeout of `worker.redis_server`.
_BLOCK_SECONDS = 5
_AFTER_A_FAILURE = timedelta(seconds=1)


class Stage(StrEnum):
    """A stage that can be woken."""

    REFRESH = "refresh"
    DELIVERY = "delivery"


class Bell:
    """The bell of one stage; made inside the running loop, for one waiter.

    `redis` is None where the process is alone. Where the stage is worked on, `listen` runs as a task beside it.
    """

    def __init__(self, stage: Stage, clock: Clock, redis: "Redis | None" = None) -> None:
        self._key = f"handbell:bell:{stage.value}"
        self._clock = clock
        self._redis = redis
        self._rung = asyncio.Event()
        self._telling: asyncio.Task[None] | None = None
        self._is_to_tell = False

    def ring(self) -> None:
        """Wake the waiter, here at once and elsewhere soon; never blocks, never raises for Redis' sake."""
        self._rung.set()
        if self._redis is None:
            return
        self._is_to_tell = True
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._tell(self._redis))

    async def wait(self, timeout: timedelta) -> bool:
        """Return True when the bell was rung since the last wait, False when `timeout` has passed."""
        if not self._rung.is_set() and timeout > timedelta(0):
            waits = {asyncio.ensure_future(self._rung.wait()), asyncio.ensure_future(self._clock.sleep(timeout))}
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
                await asyncio.gather(*waits, return_exceptions=True)
        was_rung = self._rung.is_set()
        self._rung.clear()
        return was_rung

    async def listen(self) -> None:
        """Turn rings of other processes into rings here, until cancelled; returns at once without Redis."""
        if self._redis is None:
            return
        is_reachable = True
        while True:
            try:
                rung = await cast("Awaitable[object]", self._redis.blpop([self._key], timeout=_BLOCK_SECONDS))
                is_reachable = True
            except (RedisError, OSError) as error:
                if is_reachable:
                    log.warning("bell.unreachable", key=self._key, error=type(error).__name__)
                is_reachable = False
                await self._clock.sleep(_AFTER_A_FAILURE)
                continue
            if rung is not None:
                self._rung.set()

    async def close(self) -> None:
        """Wait for a ring that is under way; safe to call twice."""
        if self._telling is not None:
            await asyncio.gather(self._telling, return_exceptions=True)

    async def _tell(self, redis: "Redis") -> None:
        while self._is_to_tell:
            self._is_to_tell = False
            try:
                async with redis.pipeline(transaction=False) as pipeline:
                    pipeline.lpush(self._key, b"1")
                    pipeline.ltrim(self._key, 0, LONGEST_LIST - 1)
                    await pipeline.execute()
            except (RedisError, OSError) as error:
                log.debug("bell.unheard", key=self._key, error=type(error).__name__)
