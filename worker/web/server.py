"""Runs an ASGI application on one address until it is told to stop, then drains it."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from config.errors import SettingsError
from worker.web.connections import BoundedConfig
from worker.web.drain import Drain

_BACKLOG = 512


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.accepts = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept, and say so."""
        await super().startup(sockets)
        self.accepts.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the wiring: it stops every part in order."""
        yield


class WebServer:
    """One listener; an async context manager: entered it accepts, left it has drained and let go of the address.

    Port 0 chooses a free one; `url` tells which. Raises SettingsError where the address cannot be used. While it
    drains, new requests are answered 503; what is still under way after `grace` is cut off. A connection without a
    request is dropped after `request_within` to twice that, and those beyond `max_connections` at once.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str,
        port: int,
        grace: timedelta = timedelta(seconds=10),
        max_connections: int = 1000,
        request_within: timedelta = timedelta(seconds=10),
    ) -> None:
        self._drain = Drain(app)
        self._host = host
        self._grace = grace
        self._config = BoundedConfig(
            self._drain,
            host=host,
            port=port,
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=True,
            proxy_headers=False,
            ws="none",
            backlog=_BACKLOG,
            limit_concurrency=max_connections,
            timeout_graceful_shutdown=1,
            timeout_keep_alive=15,
            request_within=request_within,
        )
        self._server = _Uvicorn(self._config)
        self._serving: asyncio.Task[None] | None = None
        self._port = port

    @property
    def url(self) -> str:
        """Return where it listens, without a path."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @property
    def is_draining(self) -> bool:
        """Answer whether the end has begun."""
        return self._drain.is_draining

    async def serve(self) -> None:
        """Return when it has stopped by itself, which is a defect; a task of the process waits here."""
        assert self._serving is not None, "it was entered"
        await asyncio.shield(self._serving)

    async def __aenter__(self) -> Self:
        """Bind the address and accept."""
        listener = self._listener()  # not uvicorn's own: it logs what is wrong, and exits
        self._port = listener.getsockname()[1]
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))
        await self._server.accepts.wait()
        return self

    def _listener(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            return socket.create_server((self._host, self._port), family=family, backlog=_BACKLOG)
        except OSError:
            raise SettingsError(f"cannot listen on {self._host}:{self._port}: is it in use, and ours to use?") from None

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drain, then close."""
        assert self._serving is not None, "it was entered"
        await self._drain.drain(self._grace)
        self._server.should_exit = True
        await self._serving
