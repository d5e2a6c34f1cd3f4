"""What "durable" means for a hint: the three promises an emitter may choose, each checked, none taken on trust.

| `ack`    | `add` returns when                             | `holds` asks                                      |
|----------|------------------------------------------------|---------------------------------------------------|
| `inbox`  | the consumer answered: the row is committed    | that a consumer lately wrote to its database      |
| `aof`    | Redis has fsynced its append-only file         | the same of the connection, by WAITAOF            |
| `stream` | Redis has the entry, maybe in memory only      | that Redis answers                                |

None bounds its own time: the sink does.
"""

import secrets
from typing import Protocol

from .hint import Hint
from .loop_clients import RedisClient
from .names import CONSUMER_KEY, STREAM, reply_key

_TOKEN_BYTES = 16


class Promise(Protocol):
    """One meaning of "durable"."""

    async def add(self, client: RedisClient, hint: Hint) -> None:
        """Put the hint on the stream; return when the promise holds for it, raise otherwise."""
        ...

    async def holds(self, client: RedisClient) -> bool:
        """Say whether an `add` could succeed now; may raise what the client raises."""
        ...


class StreamPromise:
    """The entry is on the stream; nothing is said about a Redis that forgets."""

    async def add(self, client: RedisClient, hint: Hint) -> None:
        """Add the entry."""
        await client.xadd(STREAM, hint.to_fields())

    async def holds(self, client: RedisClient) -> bool:
        """Ask Redis for an answer."""
        return bool(await client.ping())


class InboxPromise:
    """The consumer has committed the hint's row, however volatile Redis is."""

    def __init__(self, *, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds

    async def add(self, client: RedisClient, hint: Hint) -> None:
        """Add the entry with a token of its own, and wait for the consumer to answer on it.

        A duplicate that is already committed is answered too. `TimeoutError` where no answer came.
        """
        token = secrets.token_hex(_TOKEN_BYTES)
        await client.xadd(STREAM, hint.to_fields(token))
        answer = await client.blpop([reply_key(token)], timeout=self._timeout_seconds)
        if answer is None:
            raise TimeoutError

    async def holds(self, client: RedisClient) -> bool:
        """Ask for the key that a consumer refreshes while it can write to its database."""
        return bool(await client.exists(CONSUMER_KEY))
