"""A real HTTP server on loopback that misbehaves on order, for the fakes that speak HTTP."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from aiohttp import web


class Manner(StrEnum):
    """How a faulty exchange goes on."""

    ANSWER = "answer"  # the fault's own answer
    USUAL = "usual"  # the usual answer (after the fault's delay)
    HANG = "hang"  # no answer until the server closes
    DROP = "drop"  # the connection ends


@dataclass(frozen=True, slots=True)
class HttpFault:
    """What happens to one request instead of the usual.

    `accepts` takes the message first, as a provider does whose answer is lost. `only` keeps the fault waiting for
    a request whose path ends so (a Slack method's name).
    """

    manner: Manner = Manner.ANSWER
    status: int = 200
    body: str = ""
    content_type: str = "text/plain"
    headers: Mapping[str, str] = field(default_factory=dict)
    accepts: bool = False
    delay_seconds: float = 0.0
    only: str = ""


def answer(status: int, body: str = "", *, retry_after: str | None = None, accepts: bool = False) -> HttpFault:
    """Return a fault that answers `status`; `retry_after` may be seconds or a date."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return HttpFault(status=status, body=body, headers=headers, accepts=accepts)


def html(status: int = 502, *, accepts: bool = False) -> HttpFault:
    """Return a fault that answers with a page, as gateways do."""
    return HttpFault(status=status, body="<html><h1>Sorry</h1></html>", content_type="text/html", accepts=accepts)


def redirect(location: str, status: int = 302) -> HttpFault:
    """Return a fault that points elsewhere."""
    return HttpFault(status=status, headers={"Location": location})


def slow(delay_seconds: float) -> HttpFault:
    """Return a fault that answers as usual, but late."""
    return HttpFault(manner=Manner.USUAL, delay_seconds=delay_seconds)


HANG_AFTER_ACCEPT = HttpFault(manner=Manner.HANG, accepts=True)
HANG = HttpFault(manner=Manner.HANG)
DROP_AFTER_ACCEPT = HttpFault(manner=Manner.DROP, accepts=True)
DROP = HttpFault(manner=Manner.DROP)

Usual = Callable[[], Awaitable[web.Response]]


class LoopbackHttp:
    """Serves `handle` on a free port; `faults` is a queue, each used up by one request."""

    def __init__(self, handle: Callable[[web.Request], Awaitable[web.Response]]) -> None:
        self.port = 0
        self.faults: deque[HttpFault] = deque()
        self._handle = handle
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self._closing.set()
        assert self._runner is not None
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        """Return the server's address, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    async def respond(self, request: web.Request, usual: Usual) -> web.Response:
        """Answer by `usual`, or as the next fault wants it."""
        if not self.faults or not request.path.endswith(self.faults[0].only):
            return await usual()
        fault = self.faults.popleft()
        await asyncio.sleep(fault.delay_seconds)
        usual_response = await usual() if fault.accepts or fault.manner is Manner.USUAL else None
        if fault.manner is Manner.USUAL and usual_response is not None:
            return usual_response
        if fault.manner is Manner.HANG:
            await self._closing.wait()
        if fault.manner is Manner.DROP and request.transport is not None:
            request.transport.abort()
        return web.Response(
            status=fault.status, text=fault.body, content_type=fault.content_type, headers=fault.headers
        )
