"""What runs for long: each role is a set of tasks on one core; `handbell run` is all of them in one process.

`sink` reads the stream into the inbox; `work` refreshes, sweeps and delivers; `web` serves HTTP. What can be waited
out is waited out inside a task; a task that ends by an error ends the process, and a supervisor starts it again.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, TextIO

import structlog
from redis.asyncio import Redis
from sqlalchemy.exc import SQLAlchemyError

from config.addresses import Address, parse_address
from config.clock import Clock, SystemClock
from config.errors import SettingsError
from config.loading import Configuration
from config.steps import StepHook, ignore_step
from reconciler.errors import SourceError, SourceMissing, SourceRefused, WrongStore
from reconciler.leases import Leases
from reconciler.refresh import Refresher
from reconciler.replanning import Replanner
from reconciler.sweep import Pass, Sweeper
from sinks.consumer import Consumer
from sinks.incidents import Incidents
from worker.app import Core, check_tables, delivery_engine, open_core, overdue_notices, retention
from worker.bells import Bell, Stage
from worker.consumer_name import consumer_name
from worker.delivering import Deliverer
from worker.housekeeping import RETENTION_EVERY
from worker.jobs import Chore, Chores
from worker.metrics import Metrics
from worker.redis_server import RedisServer, open_redis, redis_client
from worker.refreshing import refresh_forever
from worker.reloading import plan_anew, reload_forever
from worker.scheduling import schedule_forever
from worker.takeover import end_leases
from worker.together import run_together
from worker.web.role import PublicListener, open_admin, open_public
from worker.web.server import WebServer

log = structlog.get_logger()

OVERDUE_EVERY = timedelta(minutes=1)
ORPHANS_EVERY = timedelta(minutes=10)
REPLAN_EVERY = timedelta(seconds=10)

_AFTER_A_FAILURE = timedelta(seconds=2)

Task = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


class Role(StrEnum):
    """A part of the work that can have processes of its own."""

    SINK = "sink"
    WORK = "work"
    WEB = "web"


ALL_ROLES = frozenset(Role)


@dataclass(frozen=True, slots=True)
class Running:
    """A process that is ready: what it stands on, and the tasks that it consists of."""

    core: Core
    redis: RedisServer
    tasks: tuple[Task, ...]
    admin: WebServer
    public: PublicListener | None
    reload: asyncio.Event  # set: the configuration is to be read again

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop`; an error in one task ends the others, is logged and raised as it is."""
        await run_together([task(stop) for task in self.tasks], stop)


async def run_roles(
    configuration: Configuration,
    roles: frozenset[Role],
    *,
    on_started: Callable[[Running], None] = lambda _running: None,
    **options: Any,
) -> None:
    """Run the roles until SIGTERM or SIGINT, then stop in order; raises ConfigError (one line) at the start.

    SIGHUP takes the channels and routes of the configuration as it is then.
    """
    stop, has_started = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def run() -> None:
        async with started(configuration, roles, **options) as running:
            has_started.set()
            loop.add_signal_handler(signal.SIGHUP, running.reload.set)
            on_started(running)
            log.info("handbell.started", roles=sorted(roles), sources=list(running.core.book.namespaces))
            await running.run(stop)

    work = asyncio.create_task(run())

    def end() -> None:
        stop.set()
        if not has_started.is_set():  # nothing looks at `stop` yet, and a source may take half a minute to answer
            work.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    try:
        await work
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
    log.info("handbell.stopped")


@asynccontextmanager
async def started(
    configuration: Configuration,
    roles: frozenset[Role],
    *,
    clock: Clock | None = None,
    on_step: StepHook = ignore_step,
    console: TextIO | None = None,
    redis: RedisServer | None = None,
    admin_listen: str | None = None,
) -> AsyncIterator[Running]:
    """Open everything that the roles need and check it; the tasks begin with `Running.run`.

    `redis` is a server that the caller has opened already.
    """
    clock = clock or SystemClock()
    if roles != ALL_ROLES:
        _require_servers(configuration, roles)
    await check_tables(configuration)
    async with AsyncExitStack() as stack:
        server = redis if redis is not None else await stack.enter_async_context(open_redis(configuration))
        client = redis_client(server.url)
        stack.push_async_callback(client.aclose)
        refresh_bell = Bell(Stage.REFRESH, clock, client)
        delivery_bell = Bell(Stage.DELIVERY, clock, client)
        stack.push_async_callback(refresh_bell.close)
        stack.push_async_callback(delivery_bell.close)
        core = await stack.enter_async_context(
            open_core(
                configuration,
                clock=clock,
                on_step=on_step,
                on_outbox=delivery_bell.ring,
                console=console,
                migrates=roles == ALL_ROLES,
                reads_pages_apart=Role.WORK in roles,
            )
        )
        if configuration.settings.database.url is None:  # then the state directory is held: there is nobody else
            await end_leases(core.engine, clock)
        metrics = Metrics()
        reload = asyncio.Event()
        replanner = Replanner(core.engine, core.clock, core.routing, on_outbox=delivery_bell.ring)
        tasks: list[Task] = [lambda _stop: reload_forever(core, reload, lambda: plan_anew(replanner))]
        if Role.SINK in roles:
            name = stack.enter_context(consumer_name(configuration.state_dir))
            tasks += _sink_tasks(core, client, name, refresh_bell)
        if Role.WORK in roles:
            await _check_sources(core)
            await replanner.adopt()
            tasks += _work_tasks(core, server, refresh_bell, delivery_bell, metrics, replanner)
        address = _admin_address(core, admin_listen)
        stopping = asyncio.Event()
        admin = await stack.enter_async_context(
            open_admin(core, server, metrics, address, asks_sources=Role.WORK in roles, is_stopping=stopping.is_set)
        )
        tasks.append(lambda _stop: admin.serve())
        public = await stack.enter_async_context(open_public(core, metrics)) if Role.WEB in roles else None
        if public is not None:
            listener = public.server
            tasks.append(lambda _stop: listener.serve())
        stack.callback(stopping.set)  # the first that is done at the end
        yield Running(core, server, tuple(tasks), admin, public, reload)


def _sink_tasks(core: Core, redis: Redis, name: str, bell: Bell) -> list[Task]:
    gap = asyncio.Event()
    consumer = Consumer(
        redis,
        core.inbox,
        Incidents(core.engine, core.clock),
        name=name,
        on_committed=lambda _sessions: bell.ring(),
        on_gap=gap.set,
        on_step=core.on_step,
    )

    async def answer_gaps(_stop: asyncio.Event) -> None:
        while True:
            await gap.wait()
            gap.clear()
            try:
                await core.namespaces.want_full()
            except (SQLAlchemyError, OSError) as error:
                log.warning("stream.gap_unanswered", error=type(error).__name__)
                gap.set()
                await core.clock.sleep(_AFTER_A_FAILURE)

    return [consumer.run, answer_gaps]


def _work_tasks(
    core: Core,
    server: RedisServer,
    refresh_bell: Bell,
    delivery_bell: Bell,
    metrics: Metrics,
    replanner: Replanner,
) -> list[Task]:
    parts = (core.engine, core.clock, core.book, core.namespaces, core.notifications)
    sweeper = Sweeper(*parts, on_pass=lambda passed: _count(metrics, passed, core.clock), on_step=core.on_step)
    refresher = Refresher(core.engine, core.clock, core.inbox, *parts[2:], on_step=core.on_step)
    delivery = Deliverer(core.live, lambda: delivery_engine(core, delivery_bell, on_attempt=metrics.attempted))

    async def replan() -> None:
        await replanner.run()

    chores = Chores(
        clock=core.clock,
        namespaces=core.namespaces,
        book=core.book,
        sweeper=sweeper,
        leases=Leases(core.engine, core.clock),
        regular={
            "retention": Chore(retention(core).run, RETENTION_EVERY),
            "overdue": Chore(overdue_notices(core).run, OVERDUE_EVERY),
            "orphans": Chore(delivery.end_orphans, ORPHANS_EVERY),
            "replan": Chore(replan, REPLAN_EVERY),
        },
    )
    return [
        lambda stop: refresh_forever(refresher, refresh_bell, core.clock, stop, on_round=metrics.refreshed),
        lambda _stop: refresh_bell.listen(),
        lambda _stop: delivery_bell.listen(),
        lambda _stop: schedule_forever(server.url, chores),
        delivery.run,
    ]


def _count(metrics: Metrics, passed: Pass, clock: Clock) -> None:
    outcome = "incomplete" if passed.problems else "complete"
    metrics.swept(passed.mode.value, outcome, clock.now() - passed.started_at)


def _admin_address(core: Core, said: str | None) -> Address:
    if said is None:
        return core.settings.web.admin_listen
    try:
        return parse_address(said)
    except ValueError as error:
        raise SettingsError(f"--admin-listen: {error}") from None


async def _check_sources(core: Core) -> None:
    """Ask every store who it is, and make a full pass of each due now.

    A wrong, unreadable or missing store ends the start (SourceError, one line). One that merely does not answer now is
    waited for: another source's requests must not wait with it.
    """
    for namespace in core.book.namespaces:
        try:
            await core.book.recheck(namespace)
        except (SourceMissing, SourceRefused, WrongStore):
            raise
        except SourceError as error:
            log.warning("source.unavailable", namespace=namespace, reason=error.reason)
    await core.namespaces.want_full()


def _require_servers(configuration: Configuration, roles: frozenset[Role]) -> None:
    """Refuse the embedded default where several processes are meant to share the servers."""
    names = ", ".join(sorted(roles))
    if configuration.settings.redis.url is None:
        raise SettingsError(f"[redis] url is not set: {names} shares its Redis with other processes, name it there")
    if configuration.settings.database.url is None:
        raise SettingsError(
            f"[database] url is not set: {names} shares its database with other processes, name it there"
        )
