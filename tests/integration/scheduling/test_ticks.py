"""What a tick enqueues: what is due by SQL, once, whatever a worker that died left in Redis."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from arq.connections import ArqRedis
from redis.asyncio import ConnectionPool, Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.leases import Leases
from reconciler.source_book import SourceBook
from reconciler.sweep import Mode
from tests.support.reconciling import NAMESPACE, Reconciling
from tests.support.scripted_source import ScriptedSource
from worker.jobs import SWEEP_QUEUE, Chore, Chores, from_json, sweep_worker, tick, to_json

SECOND = timedelta(seconds=1)


@dataclass
class Ticking:
    """Ticks and a worker on one database and one Redis; `ran` counts the turns of the one chore."""

    house: Reconciling
    redis: ArqRedis
    ran: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        house = self.house
        self.chores = Chores(
            clock=house.clock,
            namespaces=house.namespaces,
            book=house.book,
            sweeper=house.sweeper,
            leases=Leases(house.engine, house.clock),
            regular={"replan": Chore(self._run, 10 * SECOND)},
        )

    async def tick(self) -> None:
        """Enqueue what is due now."""
        await tick({"chores": self.chores, "redis": self.redis})

    async def work(self) -> None:
        """Do what is enqueued."""
        worker = sweep_worker(self.redis, self.chores)
        worker.burst = True
        await worker.async_run()

    async def due(self) -> list[tuple[str, list[Any]]]:
        """Take what is enqueued, as (function, arguments)."""
        jobs = await self.redis.queued_jobs(queue_name=SWEEP_QUEUE)
        await self.redis.flushdb()
        return sorted((job.function, list(job.args)) for job in jobs)

    async def _run(self) -> None:
        self.ran.append("replan")


@pytest.fixture
async def ticking(sqlite_engine: AsyncEngine, valkey_url: str, redis: Redis) -> AsyncIterator[Ticking]:
    """Give ticks on SQLite; the one namespace has been started."""
    house = Reconciling(sqlite_engine)
    await house.namespaces.remember(NAMESPACE, "scripted", house.source)
    pool: Any = ConnectionPool.from_url(valkey_url)
    arq = ArqRedis(
        pool_or_conn=pool, job_serializer=to_json, job_deserializer=from_json, default_queue_name=SWEEP_QUEUE
    )
    yield Ticking(house, arq)
    await arq.aclose()
    await pool.disconnect()


async def test_passes_come_as_often_as_configured(ticking: Ticking) -> None:
    modes = []
    for _ in range(90):  # ten minutes and a half
        await ticking.tick()
        modes += [arguments[1] for function, arguments in await ticking.due() if function == "sweep"]
        if modes and len(modes) > len(await ticking.house.passes()):
            await ticking.house.sweeper.sweep(NAMESPACE, Mode(modes[-1]))
        await ticking.house.clock.advance(7 * SECOND)

    assert modes.count("full") == 3
    assert 25 <= modes.count("head") <= 45


async def test_source_without_pages_is_asked_at_each_sweep_only(ticking: Ticking) -> None:
    """Nothing of it can be covered, which must not make every look at the head a full pass."""
    house = ticking.house
    entry = replace(house.book.entry(NAMESPACE), source=ScriptedSource(house.clock))
    ticking.chores = replace(ticking.chores, book=SourceBook({NAMESPACE: entry}, house.namespaces))
    await house.namespaces.save(NAMESPACE, {"sweep_due_at": house.clock.now() + timedelta(minutes=5)})

    await ticking.tick()
    early = await ticking.due()
    await house.clock.advance(timedelta(minutes=5))
    await ticking.tick()

    assert [function for function, _ in early] == ["housekeep"]
    assert ("sweep", [NAMESPACE, "full"]) in await ticking.due()


async def test_regular_work_goes_on_soon_after_its_worker_was_killed(ticking: Ticking, redis: Redis) -> None:
    """arq keeps the id of the job that died for ten minutes."""
    await ticking.tick()
    (killed,) = [job for job in await ticking.redis.queued_jobs(queue_name=SWEEP_QUEUE) if job.function == "housekeep"]
    assert killed.job_id is not None
    await redis.set(f"arq:in-progress:{killed.job_id}", b"1", ex=610)
    await redis.zrem(SWEEP_QUEUE, killed.job_id)

    await ticking.house.clock.advance(timedelta(minutes=1))
    await ticking.tick()
    await ticking.work()

    assert ticking.ran == ["replan"]


async def test_a_redis_that_forgot_everything_costs_a_tick(ticking: Ticking, redis: Redis) -> None:
    await ticking.tick()
    await redis.flushdb()

    await ticking.tick()

    assert ("sweep", [NAMESPACE, "full"]) in await ticking.due()
