"""What tests of sources share: who is enrolled, how a source is built, how it is paged through."""

from collections.abc import Sequence
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
from reconciler.sources.protocol import Page, Scans
from reconciler.sources.services import SourceServices

# What tests/support/cayu_server.py takes.
TOKEN = "tok-of-the-server"

SEEN_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class KnownIds:
    """A namespace in which these ids have a notification; remembers what it was asked."""

    def __init__(self, *attention_ids: str) -> None:
        self.attention_ids = frozenset(attention_ids)
        self.asked: list[Sequence[str]] = []

    async def enrolled(self, attention_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `attention_ids` that have a notification."""
        self.asked.append(list(attention_ids))
        return self.attention_ids & frozenset(attention_ids)


def cayu_source(url: str, *, clock: Clock | None = None, folder: Path = Path("/"), **options: Any) -> CayuSource:
    """Build the source of a store; its time stands at SEEN_AT unless a clock is given."""
    table = Options.model_validate({"store": url, **options})
    return build("test", table, SourceServices(clock or FrozenClock(SEEN_AT), folder))


async def every_page(source: Scans, *, limit: int = 200, known: KnownIds | None = None) -> list[Page]:
    """Follow the cursor to the end."""
    pages = [await source.page(None, limit=limit, known=known or KnownIds())]
    while pages[-1].next_cursor is not None:
        pages.append(await source.page(pages[-1].next_cursor, limit=limit, known=known or KnownIds()))
        assert len(pages) < 100, "the cursor never ends"
    return pages


async def shown(source: Scans, **options: Any) -> dict[str, Observation]:
    """Return what a whole scan shows, by session id."""
    return {item.reference.session_id: item for page in await every_page(source, **options) for item in page.active}


def http_source(
    url: str, http: ClientSession, *, token: str | None = TOKEN, clock: Clock | None = None, **options: Any
) -> CayuHttpSource:
    """Build the source of a server."""
    table = HttpOptions.model_validate({"url": url, "token": token, **options})
    return build_http("test", table, SourceServices(clock or FrozenClock(SEEN_AT), Path("/"), http))
