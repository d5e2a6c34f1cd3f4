"""One Redis client for each running event loop.

A connection belongs to the loop that opened it: on another one its first use raises "Event loop is closed".
"""

import asyncio
import threading
from typing import Any, TypeAlias

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from .errors import SinkConfigError

# A `redis.asyncio.Redis`, whose own annotations differ between redis-py 5 and the newest.
RedisClient: TypeAlias = Any

MAX_CONNECTIONS = 64  # one waits for each emit in flight


class LoopClients:
    """The clients of one URL; those of closed loops are dropped when a new loop appears.

    A weak mapping would never let go: client, transport and loop hold each other. Raises `SinkConfigError`, which
    does not repeat the URL, where it cannot be read.
    """

    def __init__(self, url: str, *, timeout_seconds: float) -> None:
        self._url = url
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._clients: dict[asyncio.AbstractEventLoop, RedisClient] = {}
        try:
            self._client()
        except Exception:  # a parser's own words may quote the password
            raise SinkConfigError("the Redis URL cannot be read: give redis://, rediss:// or unix://") from None

    def __len__(self) -> int:
        """Return how many loops have a client."""
        return len(self._clients)

    def current(self) -> RedisClient:
        """Return the running loop's client."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            with self._lock:
                self._clients = {known: kept for known, kept in self._clients.items() if not known.is_closed()}
                client = self._clients.setdefault(loop, self._client())
        return client

    async def close(self) -> None:
        """Close the running loop's connections; the next use opens new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.connection_pool.disconnect()

    def _client(self) -> RedisClient:
        pool = BlockingConnectionPool.from_url(
            self._url,
            max_connections=MAX_CONNECTIONS,
            timeout=self._timeout_seconds + 1,  # the sink's own bound comes first
            socket_connect_timeout=self._timeout_seconds,
            socket_timeout=self._timeout_seconds + 1,  # must outlast a blocking command's own bound
            retry=Retry(NoBackoff(), 0),  # newer clients retry by themselves for seconds; here the runtime does
            decode_responses=False,
        )
        return Redis(connection_pool=pool)
