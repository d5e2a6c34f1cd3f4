"""Puts the HTTP side of a process together: the public listener of the `web` role, and every role's admin listener."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

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
from worker.metrics import Metrics
from worker.redis_server import RedisServer, check_redis
from worker.web.admin import Admin
from worker.web.bounded import bound_waits
from worker.web.guard import Limits
from worker.web.handoff import HandoffPoint, HandoffRoutes
from worker.web.intake import Intake
from worker.web.public import public_app
from worker.web.rates import RateLimit
from worker.web.readiness import Dependency, Readiness
from worker.web.receiver import HandoffReceiver
from worker.web.server import WebServer
from worker.web.tokens import Tokens, first_run_token

# A burst is what a fleet of agents sends at once after an outage.
_BURST_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Connection:
    """How an agent is connected to a handoff source; `token` only where it is ours (made at the first start)."""

    namespace: str
    token: str | None


@dataclass(frozen=True, slots=True)
class PublicListener:
    """The open public listener, and how agents are connected to it."""

    server: WebServer
    connections: tuple[Connection, ...]


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
                tokens, connection = _tokens(options, entry.namespace, core.configuration.state_dir)
                points[entry.namespace] = _point(core, engine, entry.namespace, options, tokens)
                connections.append(connection)
        routes = HandoffRoutes(points, on_answer=metrics.handed_off).routes()
        app = public_app([*routes, *more_routes])
        async with WebServer(app, host=settings.listen.host, port=settings.listen.port) as server:
            yield PublicListener(server, tuple(connections))
    finally:
        await engine.dispose()


@asynccontextmanager
async def open_admin(
    core: Core, redis: RedisServer, metrics: Metrics, listen: Address, *, asks_sources: bool
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
    admin = Admin(Readiness(dependencies, core.clock), metrics, lambda: read_gauges(core.engine, core.clock))
    async with WebServer(admin.app(), host=listen.host, port=listen.port) as server:
        yield server


def handoff_options(entry: Entry) -> Options | None:
    """Return the options of a handoff source, None for any other."""
    source = entry.source
    return source.options if isinstance(source, HandoffSource | AskingHandoffSource) else None


def _tokens(options: Options, namespace: str, state_dir: Path) -> tuple[Tokens, Connection]:
    configured = [token.get_secret_value() for token in options.tokens]
    if configured:
        return Tokens(configured), Connection(namespace, None)
    made = first_run_token(state_dir, namespace)
    return Tokens([made]), Connection(namespace, made)


def _point(core: Core, engine: AsyncEngine, namespace: str, options: Options, tokens: Tokens) -> HandoffPoint:
    store = HandoffStore(engine, namespace)
    notifications: Notifications = core.notifications.on(engine)
    receiver = HandoffReceiver(
        Intake(namespace, notifications, store), store, core.clock, reconcile_every=options.reconcile_every
    )
    burst = max(1, int(options.requests_per_second * _BURST_SECONDS))
    rate = RateLimit(core.clock, per_second=options.requests_per_second, burst=burst)
    return HandoffPoint(receiver, tokens, rate, Limits(max_body_bytes=options.max_body_bytes))


async def _check_database(engine: AsyncEngine) -> None:
    async with said_in_one_line(engine.url), engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        await connection.execute(text("SELECT 1"))
