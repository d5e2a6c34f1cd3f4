"""Gives work a time, and its caller an answer when that is over."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

_R = TypeVar("_R")


async def within(limit: timedelta, work: Coroutine[Any, Any, _R]) -> _R:
    """Return what `work` returns, raise what it raises, or TimeoutError after `limit`.

    Late work is cancelled and ends by itself: `asyncio.timeout` would wait for what it cleans up, and a driver
    takes seconds to give up a connection to a database that is frozen.
    """
    task = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=limit.total_seconds())
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        return task.result()
    task.add_done_callback(_forget)
    task.cancel()
    raise TimeoutError


def _forget(task: asyncio.Task[_R]) -> None:
    if not task.cancelled():
        task.exception()  # nobody else asks for it, and asyncio would complain
