"""What arq runs: one tick that reads from SQL what is due, and the bounded passes that it enqueues.

arq schedules and spreads over the machines, nothing else: jobs carry ids, a JSON serializer (a pickle planted in
Redis is never loaded), and no business state. Whether a pass is due, was complete or must be repeated stands in SQL,
so a Redis that forgot everything costs one tick.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from arq import cron
from arq.connections import ArqRedis
from arq.worker import Worker

from config.clock import Clock
from reconciler.leases import Leases
from reconciler.namespaces import Namespaces
from reconciler.source_book import SourceBook
from reconciler.sources.protocol import Scans
from reconciler.sweep import Mode, Sweeper

log = structlog.get_logger()

TICK_QUEUE = "handbell:arq:ticks"
SWEEP_QUEUE = "handbell:arq:sweeps"
TICK_EVERY_SECONDS = 2
TICK_TIMEOUT = timedelta(seconds=10)

# arq's lock of a job lasts as long as the longest timeout of its queue: hence a queue of its own for passes.
SWEEP_TIMEOUT = timedelta(minutes=10)

_POLL_SECONDS = 0.25
_HEALTH_EVERY_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Chore:
    """A small regular task; its turn is a lease in SQL, so one process runs it however many there are."""

    run: Callable[[], Awaitable[None]]
    every: timedelta


@dataclass(frozen=True, slots=True)
class Chores:
    """What ticks and passes work with."""

    clock: Clock
    namespaces: Namespaces
    book: SourceBook
    sweeper: Sweeper
    leases: Leases
    regular: Mapping[str, Chore]


def to_json(value: dict[str, Any]) -> bytes:
    """Serialize a job or its result; an exception becomes its class name, never its text."""
    return json.dumps(value, default=lambda item: type(item).__name__).encode()


def from_json(raw: bytes) -> dict[str, Any]:
    """Read what `to_json` wrote; anything else is a ValueError, which arq records as a failed job."""
    loaded = json.loads(raw)
    if not isinstance(loaded, dict):
        raise TypeError("a job is a JSON object")
    return loaded


async def tick(ctx: dict[str, Any]) -> None:
    """Enqueue what is due; the deterministic job id makes a second tick for the same moment do nothing."""
    chores: Chores = ctx["chores"]
    passes: ArqRedis = ctx["redis"]
    now = chores.clock.now()
    for remembered in await chores.namespaces.due(chores.book.namespaces):
        is_scanned = isinstance(chores.book.entry(remembered.namespace).source, Scans)
        is_full = remembered.sweep_due_at <= now or (is_scanned and remembered.covered_since is None)
        if not is_full and not is_scanned:
            continue  # there are no pages whose head could be read
        mode, due_at = (Mode.FULL, remembered.sweep_due_at) if is_full else (Mode.HEAD, remembered.head_due_at)
        await _enqueue(passes, "sweep", _sweep_id(remembered.namespace, due_at, now), [remembered.namespace, mode])
    for name, chore in chores.regular.items():
        if await chores.leases.take_turn(f"chore:{name}", chore.every):
            await _enqueue(passes, "housekeep", _housekeep_id(name, chore.every, now), [name])


async def sweep(ctx: dict[str, Any], namespace: str, mode: str) -> None:
    """Run one bounded pass; a failure is logged, and the namespace stays due."""
    chores: Chores = ctx["chores"]
    done = await chores.sweeper.sweep(namespace, Mode(mode))
    if done is not None and (done.rows_changed or done.problems):
        log.info(
            "sweep.finished",
            namespace=namespace,
            mode=mode,
            pages=done.pages,
            changed=done.rows_changed,
            complete=done.is_complete,
            problems=sorted(done.problems),
        )


async def housekeep(ctx: dict[str, Any], name: str) -> None:
    """Run one of the small regular tasks by its name."""
    chores: Chores = ctx["chores"]
    await chores.regular[name].run()


def tick_worker(redis: ArqRedis, chores: Chores) -> Worker:
    """Make the worker that runs the tick."""
    seconds = set(range(0, 60, TICK_EVERY_SECONDS))
    return _worker(
        redis,
        chores,
        TICK_QUEUE,
        functions=[nothing],
        cron_jobs=[cron(tick, second=seconds, timeout=TICK_TIMEOUT.total_seconds(), keep_result=0)],
        timeout=TICK_TIMEOUT,
    )


def sweep_worker(redis: ArqRedis, chores: Chores) -> Worker:
    """Make the worker that runs passes and housekeeping."""
    return _worker(redis, chores, SWEEP_QUEUE, functions=[sweep, housekeep], cron_jobs=None, timeout=SWEEP_TIMEOUT)


def _worker(
    redis: ArqRedis, chores: Chores, queue: str, *, functions: Any, cron_jobs: Any, timeout: timedelta
) -> Worker:
    return Worker(
        functions=functions,
        cron_jobs=cron_jobs,
        queue_name=queue,
        redis_pool=redis,
        ctx={"chores": chores},
        handle_signals=False,
        max_tries=1,
        max_jobs=4,
        keep_result=0,
        job_timeout=timeout.total_seconds(),
        poll_delay=_POLL_SECONDS,
        health_check_interval=_HEALTH_EVERY_SECONDS,
        health_check_key=f"{queue}:health",
        job_serializer=to_json,
        job_deserializer=from_json,
        log_results=False,
    )


def _sweep_id(namespace: str, due_at: datetime, now: datetime) -> str:
    """Return an id of its own for each due moment, and for each minute that it is overdue.

    arq holds the id of a job whose worker was killed until the queue's timeout has passed; the lease in SQL, which
    lapses sooner, keeps two passes apart.
    """
    minutes_late = max(0, (now - due_at) // timedelta(minutes=1))
    return f"sweep:{namespace}:{due_at.isoformat()}" + (f":{minutes_late}" if minutes_late else "")


def _housekeep_id(name: str, every: timedelta, now: datetime) -> str:
    """Return an id of its own for each turn, or for each minute where turns come more often.

    As above: under one id for all turns a killed worker would hold them up for the queue's timeout; and under one
    for each, slow turns would pile up.
    """
    turn = int(now.timestamp()) // int(max(every, timedelta(minutes=1)).total_seconds())
    return f"housekeep:{name}:{turn}"


async def _enqueue(redis: ArqRedis, function: str, job_id: str, arguments: list[Any]) -> None:
    await redis.enqueue_job(function, *arguments, _job_id=job_id, _queue_name=SWEEP_QUEUE)


async def nothing(_ctx: dict[str, Any]) -> None:
    """Do nothing: arq wants a function also where a queue holds cron jobs only."""
