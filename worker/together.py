"""Runs the tasks of a process together, and ends them all: at a signal, or as soon as one of them has failed.

`asyncio.TaskGroup` cancels once and then waits for ever. A cancellation can get lost on its way, in a library that
connects just then; what is left would be a process that looks alive and does a part of its work.
"""

import asyncio
from collections.abc import Collection, Coroutine, Iterable
from datetime import timedelta
from typing import Any

import structlog

log = structlog.get_logger()

# Longer than any part needs to end in order (delivery lets what is being sent end), shorter than supervisors wait.
_PATIENCE = timedelta(seconds=15)


async def run_together(work: Iterable[Coroutine[Any, Any, None]], stop: asyncio.Event) -> None:
    """Run until `stop` is set; where one fails, set it, end the others, log every error and raise the first."""
    tasks = [asyncio.create_task(one) for one in work]
    stopping = asyncio.create_task(stop.wait())
    try:
        await _stop_or_failure(tasks, stopping)
    finally:
        stop.set()
        await end([*tasks, stopping], patience=_PATIENCE)
    errors = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
    for error in errors:
        log.error("handbell.failed", error=type(error).__name__, exc_info=error)
    if errors:
        raise errors[0]


async def end(tasks: Collection[asyncio.Task[Any]], *, patience: timedelta) -> None:
    """Cancel the tasks until all have ended; again after `patience`, for the one that lost its cancellation."""
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=patience.total_seconds())


async def _stop_or_failure(tasks: Collection[asyncio.Task[None]], stopping: asyncio.Task[Any]) -> None:
    left: set[asyncio.Task[Any]] = {*tasks, stopping}
    while stopping in left:
        done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        if any(task.cancelled() or task.exception() is not None for task in done):
            return
