"""An arq worker ends when it is told to, also one that loses a cancellation on its way."""

import asyncio
from typing import Any, cast

import pytest

from worker.scheduling import run_until_cancelled


class Deaf:
    """Stands where arq's worker does, and swallows the first cancellations."""

    def __init__(self, times: int) -> None:
        self.left = times

    async def async_run(self) -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.left -= 1
                if self.left < 0:
                    raise


class Broken:
    """A worker whose Redis is gone."""

    async def async_run(self) -> None:
        raise ConnectionError


async def test_worker_that_swallows_a_cancellation_ends_all_the_same() -> None:
    task = asyncio.create_task(run_until_cancelled(cast("Any", Deaf(times=1))))
    await asyncio.sleep(0)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)


async def test_error_of_the_worker_is_raised() -> None:
    with pytest.raises(ConnectionError):
        await run_until_cancelled(cast("Any", Broken()))
