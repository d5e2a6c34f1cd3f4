"""What tests of sources share: who is enrolled, how a source is built, how it is paged through."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import ClientSession

from config.clock import Clock, FrozenClock
from reconciler.references import Observation
from reconciler.sources.cayu import CayuSource, Options, build
from reconciler.sources.cayu_http import CayuHttpSource
from reconciler.sources.cayu_http import Options as HttpOptions
from reconciler.sources.cayu_http import build as build_http
from reconciler.sources.protocol import Scans
from reconciler.sources.services import SourceServices
from reconciler.sources.testing.paging import KnownIds, all_shown, every_page

__all__ = ["SEEN_AT", "TOKEN", "KnownIds", "cayu_source", "every_page", "http_source", "shown"]

# What tests/support/cayu_server.py takes.
TOKEN = "tok-of-the-server"

SEEN_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def cayu_source(url: str, *, clock: Clock | None = None, folder: Path = Path("/"), **options: Any) -> CayuSource:
    """Build the source of a store; its time stands at SEEN_AT unless a clock is given."""
    table = Options.model_validate({"store": url, **options})
    return build("test", table, SourceServices(clock or FrozenClock(SEEN_AT), folder))


async def shown(source: Scans, **options: Any) -> dict[str, Observation]:
    """Return what a whole scan shows, by session id."""
    return {item.reference.session_id: item for item in await all_shown(source, **options)}


def http_source(
    url: str, http: ClientSession, *, token: str | None = TOKEN, clock: Clock | None = None, **options: Any
) -> CayuHttpSource:
    """Build the source of a server."""
    table = HttpOptions.model_validate({"url": url, "token": token, **options})
    return build_http("test", table, SourceServices(clock or FrozenClock(SEEN_AT), Path("/"), http))
