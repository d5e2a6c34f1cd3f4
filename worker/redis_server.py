"""The Redis that a process uses: the configured one, or a real Valkey embedded in the state directory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError

from config.errors import DependencyError, SettingsError
from config.loading import Configuration
from worker.embedded import EmbeddedValkey
from worker.state_dir import StateDir, make_private

_CONNECT_SECONDS = 5.0

# Above every blocking read of ours. Without it a connection that the network dropped silently would be read for ever.
_SOCKET_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class RedisServer:
    """Where Redis is (`url` may hold a password: never log it), and whether it is ours."""

    url: str
    is_embedded: bool


@asynccontextmanager
async def open_redis(configuration: Configuration) -> AsyncIterator[RedisServer]:
    """Give the Redis for the block, and hold the state directory where a server or the database stands in it.

    Raises DependencyError where a configured Redis does not answer, SettingsError where it refuses us or where another
    Handbell holds the state directory.
    """
    url = configuration.settings.redis.url
    if url is None:
        async with EmbeddedValkey(configuration.state_dir) as server:
            watch = asyncio.create_task(server.watch())
            try:
                yield RedisServer(server.url, is_embedded=True)
            finally:
                watch.cancel()
                with suppress(asyncio.CancelledError):
                    await watch
        return
    await check_redis(url.get_secret_value())
    # Otherwise nothing in the state directory is one process' own: the roles of a machine share it.
    is_held = configuration.settings.database.url is None
    make_private(configuration.state_dir)
    with StateDir(configuration.state_dir) if is_held else nullcontext():
        yield RedisServer(url.get_secret_value(), is_embedded=False)


def redis_client(url: str) -> Redis:
    """Return a client whose every wait is bounded; the caller closes it."""
    client: Redis = Redis.from_url(url, socket_connect_timeout=_CONNECT_SECONDS, socket_timeout=_SOCKET_SECONDS)
    return client


async def check_redis(url: str) -> None:
    """Return where Redis answers.

    Raises DependencyError where it does not, SettingsError where it refuses us (one line each, without the URL).
    """
    client = Redis.from_url(url, socket_connect_timeout=_CONNECT_SECONDS, socket_timeout=_CONNECT_SECONDS)
    try:
        await client.ping()
    except (RedisError, OSError) as error:
        # The library wraps what the server says while it connects.
        if isinstance(error.__cause__ or error, AuthenticationError | NoPermissionError):
            raise SettingsError("[redis] url: Redis refuses us: correct the user name and password in it") from None
        raise DependencyError(f"[redis] url: Redis does not answer ({type(error).__name__}): is it there?") from None
    finally:
        await client.aclose()
