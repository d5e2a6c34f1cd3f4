"""The roles as processes of their own, on one Valkey and one PostgreSQL, as many machines run them."""

import asyncio
import os
import pickle
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.tables import NOTIFICATIONS
from tests.support.databases import engine_for
from tests.support.listeners import ONCE_EACH, Listeners
from tests.support.one_pause import Agent, Moments, emit
from tests.support.product import Product, Run, until
from tests.support.valkey import ValkeyServer
from worker.jobs import SWEEP_QUEUE, TICK_QUEUE

# arq's own names: a job is its id in the queue's sorted set, and its content under this prefix.
JOB_PREFIX = "arq:job:"


@pytest.fixture
async def cluster(
    product: Product, listeners: Listeners, agent: Agent, migrated_postgres_url: str, valkey_url: str
) -> AsyncIterator[Product]:
    """Give a product whose servers are real ones, configured and migrated."""
    toml = listeners.toml(agent.store)
    product.configure(f'{toml}\n[database]\nurl = "{migrated_postgres_url}"\n[redis]\nurl = "{valkey_url}"\n')
    yield product
    product.end()


async def states(url: str) -> list[str]:
    engine: AsyncEngine = engine_for(url)
    async with engine.connect() as connection:
        found = [row.state for row in await connection.execute(select(NOTIFICATIONS.c.state))]
    await engine.dispose()
    return found


async def test_roles_in_processes_of_their_own_tell_once_and_settle_once(
    cluster: Product,
    listeners: Listeners,
    agent: Agent,
    moments: Moments,
    valkey_url: str,
    migrated_postgres_url: str,
) -> None:
    """Two of `work`: whoever is quicker sends."""
    runs: list[Run] = [await cluster.started(role) for role in ("sink", "work", "work", "web")]

    agent.ask()
    await emit(valkey_url, moments.opening)
    await until(listeners.has_opened, *runs)
    agent.be_answered()
    await emit(valkey_url, moments.closing)
    await until(listeners.has_settled, *runs)

    assert listeners.counts() == ONCE_EACH
    assert await states(migrated_postgres_url) == ["resolved"]
    for run in runs:
        assert await run.stop() == 0, run.stderr
        assert "Traceback" not in run.stderr


async def test_worker_killed_mid_way_is_replaced_by_the_other(
    cluster: Product, listeners: Listeners, agent: Agent, moments: Moments, valkey_url: str
) -> None:
    sink, first = [await cluster.started(role) for role in ("sink", "work")]
    agent.ask()
    await emit(valkey_url, moments.opening)
    await until(listeners.has_opened, sink, first)
    second = await cluster.started("work")
    await first.kill()

    agent.be_answered()
    await emit(valkey_url, moments.closing)

    await until(listeners.has_settled, sink, second)
    assert listeners.counts() == ONCE_EACH


class Planted:
    """What makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self.path),)


async def test_planted_pickle_is_never_loaded_and_does_no_harm(
    cluster: Product, listeners: Listeners, agent: Agent, redis: Redis, tmp_path: Path
) -> None:
    """In both queues, under ids that are due: they are thrown away, and the sweep finds the request all the same."""
    trap = tmp_path / "trap"
    for number, queue in enumerate([TICK_QUEUE, SWEEP_QUEUE] * 3):
        job = f"planted-{number}"
        content = pickle.dumps({"t": 1, "f": "sweep", "a": (Planted(trap),), "k": {}, "et": 1})
        await redis.set(JOB_PREFIX + job, content if number < 4 else b"\x80garbage")
        await redis.zadd(queue, {job: 1})
    agent.ask()

    run = await cluster.started("work")
    await until(listeners.has_opened, run)
    while await redis.exists(*(f"{JOB_PREFIX}planted-{number}" for number in range(6))):
        assert not run.has_ended(), run.stderr
        await asyncio.sleep(0.05)

    assert not trap.exists()
    assert await run.stop() == 0


async def test_redis_that_goes_away_is_waited_for(
    product: Product,
    listeners: Listeners,
    agent: Agent,
    moments: Moments,
    migrated_postgres_url: str,
    own_valkey: ValkeyServer,
) -> None:
    """Everything else goes on meanwhile: what is in the outbox is sent, and afterwards the hints are taken again."""
    toml = listeners.toml(agent.store)
    product.configure(f'{toml}\n[database]\nurl = "{migrated_postgres_url}"\n[redis]\nurl = "{own_valkey.url}"\n')
    run = await product.started()
    own_valkey.kill()
    agent.ask()
    await run.said("schedule.interrupted")

    own_valkey.start()
    await until(listeners.has_opened, run)
    agent.be_answered()
    await emit(own_valkey.url, moments.closing)
    await until(listeners.has_settled, run)

    assert listeners.counts() == ONCE_EACH
    assert await run.stop() == 0
    assert "Traceback" not in run.stderr


async def test_frozen_redis_does_not_hold_up_the_end(
    product: Product, listeners: Listeners, agent: Agent, migrated_postgres_url: str, own_valkey: ValkeyServer
) -> None:
    toml = listeners.toml(agent.store)
    product.configure(f'{toml}\n[database]\nurl = "{migrated_postgres_url}"\n[redis]\nurl = "{own_valkey.url}"\n')
    run = await product.started()
    own_valkey.send(signal.SIGSTOP)
    try:
        assert await run.stop() == 0, run.stderr
    finally:
        own_valkey.send(signal.SIGCONT)


async def test_database_that_goes_away_ends_nothing_and_comes_back(
    product: Product,
    listeners: Listeners,
    agent: Agent,
    moments: Moments,
    migrated_postgres_url: str,
    valkey_url: str,
) -> None:
    """Its connections are ended and new ones refused for a while."""
    import asyncpg

    toml = listeners.toml(agent.store)
    product.configure(f'{toml}\n[database]\nurl = "{migrated_postgres_url}"\n[redis]\nurl = "{valkey_url}"\n')
    run = await product.started()
    name = migrated_postgres_url.split("/")[3].split("?")[0]
    admin = await asyncpg.connect(migrated_postgres_url.replace(f"/{name}", "/postgres"))
    try:
        await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
        agent.ask()
        await run.said("inbox.")
    finally:
        await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        await admin.close()

    await emit(valkey_url, moments.opening)
    await until(listeners.has_opened, run)

    engine = engine_for(migrated_postgres_url)
    async with engine.connect() as connection:
        assert (await connection.execute(select(func.count()).select_from(NOTIFICATIONS))).scalar_one() == 1
    await engine.dispose()
    assert await run.stop() == 0
