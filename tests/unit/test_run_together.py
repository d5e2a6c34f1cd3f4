"""The tasks of a process end together, whatever one of them does."""

import asyncio

import pytest

from worker.together import run_together


class BrokenError(Exception):
    pass


async def idle() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    raise BrokenError


async def test_failure_of_one_ends_the_others_and_is_raised_as_it_is() -> None:
    stop = asyncio.Event()

    with pytest.raises(BrokenError):
        await asyncio.wait_for(run_together([idle(), fail()], stop), 10)

    assert stop.is_set()


async def test_one_that_returns_ends_nobody() -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(run_together([idle(), asyncio.sleep(0)], stop))
    await asyncio.sleep(0.01)
    assert not running.done()

    stop.set()

    await asyncio.wait_for(running, 10)


async def test_one_that_loses_its_cancellation_but_looks_at_stop_ends() -> None:
    stop = asyncio.Event()

    async def deaf() -> None:
        while not stop.is_set():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    with pytest.raises(BrokenError):
        await asyncio.wait_for(run_together([deaf(), fail()], stop), 10)


async def test_cancellation_of_the_whole_ends_all() -> None:
    ended = asyncio.Event()

    async def clean() -> None:
        try:
            await idle()
        finally:
            ended.set()

    running = asyncio.create_task(run_together([clean()], asyncio.Event()))
    await asyncio.sleep(0)

    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()
