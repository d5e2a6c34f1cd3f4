"""The HTTP sessions that all destinations share: bounded in time, no redirects, no cookies, no proxy from outside.

There are two, never one more: an open connection is reused by whoever asks for the same host, so a destination
that may reach private addresses must not share its connections with one that may not.
"""

from collections.abc import Callable
from types import SimpleNamespace

from aiohttp import (
    ClientError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    TraceConfig,
    TraceRequestRedirectParams,
)
from aiohttp.abc import AbstractResolver

from worker.channels.addresses import PublicResolver, public_socket

# The outermost bound of any request; each channel sets its own, lower one.
MAX_REQUEST_SECONDS = 60.0

# How long a connection may take to come up; lower than a request's bound, so that «could not connect» (nothing
# was sent) and «no answer» (it may have been taken) stay apart.
CONNECT_SECONDS = 5.0

CONNECTIONS_PER_HOST = 20

USER_AGENT = "handbell"


class RedirectRefusedError(ClientError):
    """An answer wanted to lead elsewhere: never followed, whatever the library at work would do."""

    def __init__(self, status: int) -> None:
        super().__init__(f"redirects are not followed ({status})")
        self.status = status


def request_timeout(total_seconds: float) -> ClientTimeout:
    """Return the bounds of one request: `total_seconds` in all, less for the connection alone."""
    connect_seconds = min(CONNECT_SECONDS, total_seconds / 2)
    return ClientTimeout(total=total_seconds, connect=connect_seconds, sock_connect=connect_seconds)


class HttpSessions:
    """Opens each of the two sessions when it is first asked for, inside the running loop."""

    def __init__(self, resolver: Callable[[], AbstractResolver] | None = None) -> None:
        self._make_resolver = resolver
        self._sessions: dict[bool, ClientSession] = {}

    def session(self, *, allow_private: bool) -> ClientSession:
        """Return the shared session; without `allow_private` it connects to public addresses only."""
        found = self._sessions.get(allow_private)
        if found is None or found.closed:
            found = self._sessions[allow_private] = self._open(allow_private=allow_private)
        return found

    async def close(self) -> None:
        """Close what is open; safe to call twice."""
        while self._sessions:
            _, session = self._sessions.popitem()
            await session.close()

    def _open(self, *, allow_private: bool) -> ClientSession:
        inner = self._make_resolver() if self._make_resolver else None
        if allow_private:
            connector = TCPConnector(limit_per_host=CONNECTIONS_PER_HOST, resolver=inner)
        else:
            connector = TCPConnector(
                limit_per_host=CONNECTIONS_PER_HOST, resolver=PublicResolver(inner), socket_factory=public_socket
            )
        trace = TraceConfig()
        trace.on_request_redirect.append(_refuse_redirect)
        return ClientSession(
            connector=connector,
            timeout=request_timeout(MAX_REQUEST_SECONDS),
            cookie_jar=DummyCookieJar(),
            headers={"User-Agent": USER_AGENT},
            trust_env=False,
            trace_configs=[trace],
        )


async def _refuse_redirect(
    _session: ClientSession, _context: SimpleNamespace, params: TraceRequestRedirectParams
) -> None:
    params.response.close()
    raise RedirectRefusedError(params.response.status)
