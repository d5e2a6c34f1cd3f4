"""Keeps the arq workers running: one for the tick, one for the passes; a Redis that is away is waited for.

arq's worker dies with its Redis connection. Nothing is lost by that: what is due stands in SQL, and the next tick
finds it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import structlog
from arq.connections import ArqRedis
from arq.worker import Worker
from redis.asyncio import ConnectionPool

from worker.jobs import SWEEP_QUEUE, Chores, from_json, sweep_worker, tick_worker, to_json
from worker.together import end

log = structlog.get_logger()

# arq reads nothing blockingly, so no answer takes long; closing a worker asks Redis too, and must end.
_ANSWER_SECONDS = 5.0

_CANCEL_AGAIN = timedelta(milliseconds=500)

_FIRST_PAUSE = timedelta(milliseconds=500)
_LONGEST_PAUSE = timedelta(seconds=15)


async def schedule_forever(redis_url: str, chores: Chores) -> None:
    """Run both workers until cancelled."""
    async with asyncio.TaskGroup() as group:
        for make in (tick_worker, sweep_worker):
            group.create_task(_supervise(redis_url, chores, make))


async def run_until_cancelled(worker: Worker) -> None:
    """Run the worker; when cancelled, cancel it until it has ended.

    Once is not enough: a cancellation that reaches arq while it connects is lost, and it would poll for ever.
    """
    work = asyncio.create_task(worker.async_run())
    try:
        await asyncio.wait({work})
    except asyncio.CancelledError:
        await end([work], patience=_CANCEL_AGAIN)
        await asyncio.gather(work, return_exceptions=True)
        raise
    await work


async def _supervise(redis_url: str, chores: Chores, make: Callable[[ArqRedis, Chores], Worker]) -> None:
    pause = _FIRST_PAUSE
    while True:
        redis = ArqRedis(
            pool_or_conn=ConnectionPool.from_url(
                redis_url, socket_connect_timeout=_ANSWER_SECONDS, socket_timeout=_ANSWER_SECONDS
            ),
            job_serializer=to_json,
            job_deserializer=from_json,
            default_queue_name=SWEEP_QUEUE,
        )
        worker = make(redis, chores)
        started_at = chores.clock.now()
        try:
            await run_until_cancelled(worker)
        except Exception as error:  # arq's own text may hold what a job was given
            log.warning("schedule.interrupted", queue=worker.queue_name, error=type(error).__name__)
        finally:
            with suppress(Exception):
                await worker.close()
        if chores.clock.now() - started_at > _LONGEST_PAUSE:
            pause = _FIRST_PAUSE
        await chores.clock.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
