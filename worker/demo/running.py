"""Handbell itself in a demo: all roles in this process, watched step by step."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from config.loading import Configuration
from config.steps import Step
from worker.redis_server import RedisServer
from worker.roles import ALL_ROLES, Running, started

_PATIENCE_SECONDS = 60.0


class Progress:
    """Waits for something to become true, looking again at every step of the flow."""

    def __init__(self) -> None:
        self._moved = asyncio.Event()

    def on_step(self, _step: Step) -> None:
        """Note that something happened."""
        self._moved.set()

    async def until(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        """Return when `is_so`; TimeoutError after a minute."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not await is_so():
                await self._moved.wait()
                self._moved.clear()


@asynccontextmanager
async def handbell(
    configuration: Configuration, progress: Progress, *, redis: RedisServer | None = None
) -> AsyncIterator[Running]:
    """Run everything for the block, as `handbell run` does."""
    async with started(configuration, ALL_ROLES, on_step=progress.on_step, redis=redis) as running:
        stop = asyncio.Event()
        work = asyncio.create_task(running.run(stop))
        try:
            yield running
        finally:
            stop.set()
            with suppress(asyncio.CancelledError):
                await work
