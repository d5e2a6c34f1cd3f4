"""Tries every dependency of a configuration without telling anybody anything, and says what is durable."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.errors import ConfigError
from reconciler.errors import SourceError
from worker.app import Core
from worker.redis_server import check_redis


@dataclass(frozen=True, slots=True)
class Finding:
    """What was tried, whether it works, and one line of what was found."""

    what: str
    is_good: bool
    found: str


async def findings(core: Core) -> AsyncIterator[Finding]:
    """Yield a finding for each dependency: the database (it is open), Redis, every source, every destination."""
    kind = core.engine.dialect.name
    durable = "a committed row is on the disk" if kind == "sqlite" else "as durable as the server's fsync"
    yield Finding("database", True, f"{kind}, migrated; {durable}")
    yield await _redis(core)
    for entry in core.book.entries:
        name = f"source {entry.namespace}"
        yield await _tried(name, lambda entry=entry: _source(core, entry.namespace))  # type: ignore[misc]
    for name, destination in core.destinations.items():
        yield await _tried(f"destination {name}", destination.channel.check)


async def _source(core: Core, namespace: str) -> str:
    source = await core.book.recheck(namespace)
    await source.check()
    return f"{core.book.entry(namespace).type}, readable"


async def _tried(what: str, attempt: Callable[[], Awaitable[str]]) -> Finding:
    try:
        return Finding(what, True, await attempt())
    except (ConfigError, SourceError) as error:
        return Finding(what, False, str(error))


async def _redis(core: Core) -> Finding:
    url = core.settings.redis.url
    if url is None:
        return Finding(
            "redis", True, "embedded, append-only file; hints are acknowledged from the database (ack=inbox)"
        )

    async def attempt() -> str:
        await check_redis(url.get_secret_value())
        return await _durability(url.get_secret_value())

    return await _tried("redis", attempt)


async def _durability(url: str) -> str:
    client = Redis.from_url(url)
    try:
        persistence = await client.info("persistence")
        memory = await client.info("memory")
    except RedisError:
        return "answers; it does not say what it keeps, which ack=inbox does not need"
    finally:
        await client.aclose()
    keeps = "keeps an append-only file" if persistence.get("aof_enabled") else "forgets the stream when it restarts"
    policy = memory.get("maxmemory_policy", "unknown")
    evicts = "" if policy == "noeviction" else f"; its maxmemory-policy {policy} may drop hints (use noeviction)"
    return f"answers, {keeps}{evicts}; ack=inbox is safe with either"
