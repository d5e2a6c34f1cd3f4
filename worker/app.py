"""The wiring: the only place that chooses implementations and turns settings into plain values.

`open_core` makes what every command needs: the database, the sources, the destinations and the one writer of states.
What runs for long (loops, servers, the arq workers) stands on it in `worker/roles.py`.
"""

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TextIO

import aiohttp
import structlog
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock, SystemClock
from config.database import create_engine
from config.loading import Configuration
from config.migrate import migrate, require_current
from config.settings import Settings, SourceSettings
from config.steps import StepHook, ignore_step
from reconciler.confirm import BOUND, Confirmer
from reconciler.namespaces import Namespaces
from reconciler.notifications import Notifications
from reconciler.overdue import OverdueNotices
from reconciler.routes import Routing
from reconciler.source_book import Entry, SourceBook
from reconciler.sources.registry import build_source, source_options
from reconciler.sources.services import SourceServices
from sinks.inbox import Inbox
from worker.bells import Bell
from worker.channels.destination import Destination
from worker.channels.registry import build_destinations
from worker.channels.services import Services
from worker.delivery.backoff import BackOff
from worker.delivery.batch import OnAttempt, ignore_attempt
from worker.delivery.engine import DeliveryEngine
from worker.delivery.limits import Limits
from worker.delivery.messages import Links
from worker.housekeeping import Keep, Retention
from worker.live import Live, Telling
from worker.route_wiring import routing_of

log = structlog.get_logger()

# One question to an agent's server; a page may take the server seconds to compute.
_SOURCE_HTTP_TIMEOUT = aiohttp.ClientTimeout(total=30, connect=5)


@dataclass(frozen=True, slots=True)
class Core:
    """What every command stands on; opened and closed by `open_core`."""

    configuration: Configuration
    clock: Clock
    on_step: StepHook
    engine: AsyncEngine
    inbox: Inbox
    namespaces: Namespaces
    book: SourceBook
    live: Live
    services: Services
    notifications: Notifications

    @property
    def destinations(self) -> Mapping[str, Destination]:
        """Return the destinations as they are now, by name."""
        return self.live.now.destinations

    def routing(self) -> Routing:
        """Return the routes as they are now."""
        return self.live.now.routing

    @property
    def settings(self) -> Settings:
        """Return the settings that all of it was made from."""
        return self.configuration.settings


@asynccontextmanager
async def open_core(
    configuration: Configuration,
    *,
    clock: Clock | None = None,
    on_step: StepHook = ignore_step,
    on_outbox: Callable[[], None] = lambda: None,
    console: TextIO | None = None,
    migrates: bool = False,
    reads_pages_apart: bool = False,
) -> AsyncIterator[Core]:
    """Open the database and build sources and destinations; nothing is asked of them yet.

    `migrates` brings an embedded database to head first; otherwise, and for a configured one, it must be there.
    `reads_pages_apart` is for a process that also delivers: a sweep's pages are computed in a child.
    Raises ConfigError (one line).
    """
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        settings = configuration.settings
        channel_services = Services(clock=clock, folder=configuration.folder, console=console or sys.stdout)
        stack.push_async_callback(channel_services.close)
        live = Live(telling_of(configuration, channel_services))
        stack.push_async_callback(live.close)
        engine = create_engine(configuration.database_url, pool_size=settings.database.pool_size)
        stack.push_async_callback(engine.dispose)
        if migrates and settings.database.url is None:
            await migrate(engine)
        await require_current(engine)
        http = await stack.enter_async_context(aiohttp.ClientSession(timeout=_SOURCE_HTTP_TIMEOUT))
        namespaces = Namespaces(engine, clock)
        services = SourceServices(clock, configuration.folder, http, reads_pages_apart=reads_pages_apart)
        book = SourceBook(_entries(settings, services, await namespaces.boundaries()), namespaces)
        stack.push_async_callback(book.close)
        yield Core(
            configuration=configuration,
            clock=clock,
            on_step=on_step,
            engine=engine,
            inbox=Inbox(engine, clock),
            namespaces=namespaces,
            book=book,
            live=live,
            services=channel_services,
            notifications=Notifications(engine, clock, lambda: live.now.routing, on_outbox=on_outbox, on_step=on_step),
        )


def telling_of(configuration: Configuration, services: Services) -> Telling:
    """Build the destinations and routes that the settings name; raises SettingsError (one line)."""
    settings = configuration.settings
    destinations = {item.name: item for item in build_destinations(_channel_tables(settings), services)}
    return Telling(destinations, routing_of(settings.routes, destinations.values()), settings.operator.notify)


async def check_tables(configuration: Configuration) -> None:
    """Build every destination and source and let go of them; nothing is opened, made or asked.

    Raises SettingsError (one line): what is wrong with the configuration is said before anything is started.
    """
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        channel_services = Services(clock=clock, folder=configuration.folder)
        stack.push_async_callback(channel_services.close)
        for destination in build_destinations(_channel_tables(configuration.settings), channel_services):
            stack.push_async_callback(destination.channel.close)
        http = await stack.enter_async_context(aiohttp.ClientSession())
        services = SourceServices(clock=clock, folder=configuration.folder, http=http)
        for entry in _entries(configuration.settings, services, {}).values():
            stack.push_async_callback(entry.source.close)


def delivery_engine(core: Core, bell: Bell | None = None, *, on_attempt: OnAttempt = ignore_attempt) -> DeliveryEngine:
    """Return the delivery of this process, with the bounds that the settings give; `on_attempt` counts."""
    limits, links = core.settings.delivery, core.settings.links
    return DeliveryEngine(
        core.engine,
        core.clock,
        core.destinations.values(),
        Confirmer(core.clock, core.book.believed, core.notifications, bound=min(BOUND, limits.lease * 2 / 3)),
        bell=bell,
        operator=core.live.now.operator,
        links=Links(pattern=links.session, are_raw_ids_allowed=links.raw_session_id),
        limits=Limits(
            lease=limits.lease,
            backoff=delivery_backoff(core.settings),
            dead_letter_limit=limits.dead_letter_limit,
        ),
        on_step=core.on_step,
        on_attempt=on_attempt,
        routing=core.routing,
    )


def delivery_backoff(settings: Settings) -> BackOff:
    """Return the schedule of retries that the settings ask for."""
    limits = settings.delivery
    return BackOff(
        base=limits.backoff_base,
        cap=limits.backoff_cap,
        max_attempts=limits.attempt_limit,
        max_age=limits.age_limit,
    )


def overdue_notices(core: Core) -> OverdueNotices:
    """Return what tells the operator of requests that are unavailable for too long."""
    return OverdueNotices(
        core.engine,
        core.clock,
        after=core.settings.unavailable.notice_after,
        targets=lambda: core.routing().targets_of(core.live.now.operator),
    )


def retention(core: Core) -> Retention:
    """Return what deletes old rows, with the times that the settings give."""
    keep = core.settings.retention
    return Retention(
        core.engine,
        core.clock,
        Keep(
            hints=keep.hints,
            settled=keep.settled,
            sweeps=keep.sweeps,
            dead_entries=keep.dead_entries,
            audit=keep.audit,
        ),
    )


def _channel_tables(settings: Settings) -> dict[str, dict[str, object]]:
    return {
        name: {"type": channel.type, "fallback": list(channel.fallback), **channel.options}
        for name, channel in settings.channels.items()
    }


def _entries(
    settings: Settings, services: SourceServices, boundaries: Mapping[str, datetime | None]
) -> dict[str, Entry]:
    return {
        source.namespace: _entry(number, source, services, boundaries) for number, source in enumerate(settings.sources)
    }


def _entry(
    number: int, source: SourceSettings, services: SourceServices, boundaries: Mapping[str, datetime | None]
) -> Entry:
    where = f"[[sources]] number {number + 1} ({source.namespace})"
    module, options = source_options(source.type, source.options, services, where=where)
    options = _with_boundary(source.namespace, options, boundaries)
    return Entry(
        namespace=source.namespace,
        type=source.type,
        source=build_source(module, source.namespace, options, services, where=where),
        sweep_every=source.sweep_every,
        head_every=source.head_every,
        # A type that has no boundary leaves the standing one of its namespace alone.
        enrolled_after=getattr(options, "enroll_after", boundaries.get(source.namespace)),
    )


def _with_boundary(namespace: str, options: BaseModel, boundaries: Mapping[str, datetime | None]) -> BaseModel:
    """Let the boundary of the namespace's first start stand: the same in every process, whatever is configured now."""
    if "enroll_after" not in type(options).model_fields or namespace not in boundaries:
        return options
    standing = boundaries[namespace]
    if getattr(options, "enroll_after", None) != standing:
        log.warning("source.boundary_kept", namespace=namespace, enrolled_after=standing and standing.isoformat())
    return options.model_copy(update={"enroll_after": standing})
