"""Puts the HTTP side of a process together: the public listener of the `web` role, and every role's admin listener."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.routing import BaseRoute

from config.addresses import Address
from config.database import READ_ONLY, create_engine
from config.database_errors import said_in_one_line
from reconciler.handoff_store import HandoffStore
from reconciler.notifications import Notifications
from reconciler.source_book import Entry
from reconciler.sources.handoff import AskingHandoffSource, HandoffSource
from reconciler.sources.handoff_options import Options
from worker.app import Core
from worker.gauges import read_gauges
from worker.metrics import Metrics, Sample
from worker.redis_server import RedisServer, check_redis
from worker.web.admin import Admin
from worker.web.bounded import bound_waits
from worker.web.capture import capture_route
from worker.web.doors import Connection, capture_points, open_tokens, rate_of
from worker.web.guard import Limits
from worker.web.handoff import HandoffPoint, HandoffRoutes
from worker.web.intake import Intake
from worker.web.public import public_app
from worker.web.readiness import Dependency, Readiness
from worker.web.receiver import HandoffReceiver
from worker.web.server import WebServer
from worker.web.tokens import Tokens


@dataclass(frozen=True, slots=True)
class PublicListener:
    """The open public listener, and how agents are connected to it."""

    server: WebServer
    connections: tuple[Connection, ...]
    captures: tuple[Connection, ...] = ()


@asynccontextmanager
async def open_public(
    core: Core, metrics: Metrics, more_routes: Sequence[BaseRoute] = ()
) -> AsyncIterator[PublicListener]:
    """Listen on the public address for the block, and drain at its end; raises SettingsError (one line).

    It has an engine of its own, whose waits end before a sender gives up.
    """
    settings = core.settings.web
    engine = bound_waits(create_engine(core.configuration.database_url, pool_size=core.settings.database.pool_size))
    try:
        points: dict[str, HandoffPoint] = {}
        connections: list[Connection] = []
        for entry in core.book.entries:
            options = handoff_options(entry)
            if options is not None:
                tokens, connection = open_tokens(
                    options.tokens, entry.namespace, core.configuration.state_dir, "handoff"
                )
                points[entry.namespace] = _point(core, engine, entry.namespace, options, tokens)
                connections.append(connection)
        routes = HandoffRoutes(points, on_answer=metrics.handed_off).routes()
        captured, captures = capture_points(core, engine)
        app = public_app([*routes, capture_route(captured), *more_routes])
        async with WebServer(app, host=settings.listen.host, port=settings.listen.port) as server:
            yield PublicListener(server, tuple(connections), captures)
    finally:
        await engine.dispose()


@asynccontextmanager
async def open_admin(
    core: Core,
    redis: RedisServer,
    metrics: Metrics,
    listen: Address,
    *,
    asks_sources: bool,
    is_stopping: Callable[[], bool],
) -> AsyncIterator[WebServer]:
    """Listen on the admin address for the block; raises SettingsError (one line)."""
    dependencies = [
        Dependency("database", lambda: _check_database(core.engine)),
        Dependency("redis", lambda: check_redis(redis.url)),
    ]
    if asks_sources:
        dependencies += [
            Dependency(f"source {entry.namespace}", entry.source.check, is_required=False)
            for entry in core.book.entries
        ]
    readiness = Readiness(dependencies, core.clock)

    async def gauges() -> Sequence[Sample]:
        return await read_gauges(core.engine, core.clock, core.book.namespaces)

    admin = Admin(readiness, metrics, gauges, is_stopping=is_stopping)
    async with WebServer(admin.app(), host=listen.host, port=listen.port) as server:
        yield server


def handoff_options(entry: Entry) -> Options | None:
    """Return the options of a handoff source, None for any other."""
    source = entry.source
    return source.options if isinstance(source, HandoffSource | AskingHandoffSource) else None


def _point(core: Core, engine: AsyncEngine, namespace: str, options: Options, tokens: Tokens) -> HandoffPoint:
    store = HandoffStore(engine, namespace)
    notifications: Notifications = core.notifications.on(engine)
    receiver = HandoffReceiver(
        Intake(namespace, notifications, store), store, core.clock, reconcile_every=options.reconcile_every
    )
    rate = rate_of(core.clock, options.requests_per_second)
    return HandoffPoint(receiver, tokens, rate, Limits(max_body_bytes=options.max_body_bytes))


async def _check_database(engine: AsyncEngine) -> None:
    async with said_in_one_line(engine.url), engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        await connection.execute(text("SELECT 1"))
