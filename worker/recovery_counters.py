"""What the recovery loops in the agents' environments say of themselves, read from Redis for `handbell status`."""

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.loading import Configuration
from sinks.emit.names import RECOVERY_PREFIX
from worker.embedded import embedded_socket

# Status must not wait for a Redis that is away.
_PATIENCE_SECONDS = 2.0

# Counters are numbers; these two are words.
_WORDS = frozenset({"last_outcome", "observed_at"})


async def read_recovery(
    configuration: Configuration, namespaces: Sequence[str]
) -> Mapping[str, Mapping[str, int | str]]:
    """Return each namespace's counters (sinks/emit/README.md); empty where no loop reported or Redis does not answer.

    Redis is the configured one, else the embedded one of a Handbell that runs now.
    """
    url = _url(configuration)
    if url is None or not namespaces:
        return {}
    client = Redis.from_url(url, decode_responses=True)
    pipeline = client.pipeline(transaction=False)
    for namespace in namespaces:
        pipeline.hgetall(RECOVERY_PREFIX + namespace)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            answers = await pipeline.execute()
    except (RedisError, OSError):  # a TimeoutError is an OSError
        return {}
    finally:
        await client.aclose()
    return {name: _counters(answer) for name, answer in zip(namespaces, answers, strict=True) if answer}


def _url(configuration: Configuration) -> str | None:
    configured = configuration.settings.redis.url
    if configured is not None:
        return configured.get_secret_value()
    socket = embedded_socket(configuration.state_dir)
    return f"unix://{quote(str(socket))}" if socket is not None and socket.exists() else None


def _counters(answer: Mapping[str, str]) -> dict[str, int | str]:
    """Return the counters as numbers; what an agent of another version wrote and is none is left out."""
    counters: dict[str, int | str] = {name: int(value) for name, value in sorted(answer.items()) if value.isdecimal()}
    return counters | {name: answer[name] for name in sorted(_WORDS & answer.keys())}
