"""How long an event loop was held up: by how much a short sleep overslept, at worst."""

import asyncio
import time
from contextlib import suppress
from typing import Any, Self

_TICK_SECONDS = 0.005


class LoopDelay:
    """Measures while it is entered."""

    def __init__(self) -> None:
        self.longest_seconds = 0.0

    async def __aenter__(self) -> Self:
        """Begin to tick."""
        self._task = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: Any) -> None:
        """Stop."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _tick(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_TICK_SECONDS)
            self.longest_seconds = max(self.longest_seconds, time.perf_counter() - began - _TICK_SECONDS)
