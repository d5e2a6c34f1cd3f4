"""Bounds what a connection costs before it has said anything: how long it may stay without a request, and how many.

uvicorn's own timeout begins with the first answer, and its limit of connections refuses requests, not connections:
whoever opened a thousand and said nothing kept every sender out, for ever.
"""

import asyncio
from datetime import timedelta
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol


class BoundedConfig(uvicorn.Config):
    """uvicorn's configuration, and how long a connection may be without a request under way."""

    def __init__(self, app: ASGIApp, *, request_within: timedelta, **options: Any) -> None:
        super().__init__(app, http=BoundedProtocol, **options)
        self.request_within = request_within


class BoundedProtocol(H11Protocol):
    """Drops a connection that has no request under way at two looks in a row, `request_within` apart.

    What trickles in meanwhile changes nothing: half a head, or a body that was answered without being read.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin to look; one connection more than the limit is dropped at once."""
        super().connection_made(transport)
        assert isinstance(self.config, BoundedConfig), "the server makes both"
        self._every_seconds = self.config.request_within.total_seconds()
        self._looked_at: object = None
        self._looking: asyncio.TimerHandle | None = None
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency:
            transport.abort()
            return
        self._looking = self.loop.call_later(self._every_seconds, self._look, False)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()
        super().connection_lost(exc)

    def _look(self, was_idle: bool) -> None:
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and was_idle and self.cycle is self._looked_at:
            self.transport.abort()  # not closed: one that does not read would never be
            return
        self._looked_at = self.cycle
        self._looking = self.loop.call_later(self._every_seconds, self._look, is_idle)
