"""The stream as the consumer group sees it: every Redis command that the consumer needs, bounded in time.

Facts (redis and valkey, measured): XREADGROUP of one's own pending entries gives trimmed ones without fields;
XAUTOCLAIM lists them apart and forgets them; a group that is gone answers NOGROUP, and a blocked read whose key is
deleted UNBLOCKED; XACK for a group that is gone is no error; stream ids may start again, so they are no key.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from sinks.emit.names import CONSUMER_KEY, GROUP, STREAM, reply_key

READ_COUNT = 500
REPLY_TTL = timedelta(seconds=10)
# Deletes the group's idle consumers that hold nothing. One script, since Redis forgets what a deleted consumer holds:
#     we see nothing pending | it comes back and reads | we delete it, and what it read is delivered to nobody again
_FORGET_IDLE = """
local forgotten = 0
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
    local of = {}
    for i = 1, #consumer, 2 do of[consumer[i]] = consumer[i + 1] end
    if of.name ~= ARGV[2] and of.pending == 0 and of.idle > tonumber(ARGV[3]) then
        redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], of.name)
        forgotten = forgotten + 1
    end
end
return forgotten
"""
_ANSWER_TIMEOUT = timedelta(seconds=5)  # on top of what a command may block: a silent peer is a broken connection

NEW = b">"
OWN_PENDING = b"0"


class RawEntry(NamedTuple):
    """An entry as read; `fields` are empty where it was trimmed away while pending."""

    stream_id: bytes
    fields: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Claimed:
    """Entries taken over from consumers that were silent for long, and the ids of those that are gone."""

    entries: Sequence[RawEntry]
    gone: Sequence[bytes]


class GroupLost(Exception):  # noqa: N818  # it states a fact
    """The stream or its group is gone: Redis was flushed, or restarted without its data."""


class HintStream:
    """Reads the stream as consumer `name` of the group. `redis` decodes nothing; its errors are let through."""

    def __init__(self, redis: Redis, name: str) -> None:
        self._redis: Any = redis  # its annotations say "maybe a coroutine" where it always is one
        self._name = name

    async def create_group(self) -> bool:
        """Create the group at the stream's start, so that nothing already there is skipped; False if it exists."""
        try:
            async with _bounded():
                await self._redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if str(error).startswith("BUSYGROUP"):
                return False
            raise
        return True

    async def read(self, after: bytes, *, block: timedelta) -> Sequence[RawEntry]:
        """Read up to `READ_COUNT` entries: `NEW` ones, waiting for `block`, or the pending ones after an id.

        Raises `GroupLost`.
        """
        try:
            async with _bounded(block):
                reply = await self._redis.xreadgroup(
                    GROUP, self._name, {STREAM: after}, count=READ_COUNT, block=int(block.total_seconds() * 1000)
                )
        except ResponseError as error:
            raise _translated(error) from None
        return [RawEntry(stream_id, fields or {}) for _, entries in reply for stream_id, fields in entries]

    async def claim(self, *, idle: timedelta) -> Claimed:
        """Take over up to `READ_COUNT` entries that were held for longer than `idle`. Raises `GroupLost`."""
        idle_ms = int(idle.total_seconds() * 1000)
        try:
            async with _bounded():
                _, entries, *gone = await self._redis.xautoclaim(
                    STREAM, GROUP, self._name, idle_ms, start_id="0-0", count=READ_COUNT
                )
        except ResponseError as error:
            raise _translated(error) from None
        # Before Redis 7 a trimmed entry comes as a pair of nothing, without its id.
        found = [RawEntry(stream_id, fields or {}) for stream_id, fields in entries if stream_id is not None]
        return Claimed(found, gone[0] if gone else [])

    async def acknowledge(self, stream_ids: Sequence[bytes], tokens: Iterable[str]) -> None:
        """Acknowledge the entries and answer the emitters, in one round trip.

        The keys are built from checked tokens; one that holds something else is left alone, and a reply that nobody
        fetches goes by itself.
        """
        pipeline = self._redis.pipeline(transaction=False)
        if stream_ids:
            pipeline.xack(STREAM, GROUP, *stream_ids)
        for token in tokens:
            pipeline.lpush(reply_key(token), b"1")
            pipeline.pexpire(reply_key(token), REPLY_TTL)
        async with _bounded():
            await pipeline.execute(raise_on_error=False)

    async def show_alive(self, ttl: timedelta) -> None:
        """Refresh the key that tells emitters that a consumer can write to its database."""
        async with _bounded():
            await self._redis.set(CONSUMER_KEY, self._name, px=ttl)

    async def trim(self) -> int:
        """Remove what no group needs any more; return how many entries that was.

        An entry is needed while it is pending in a group or not yet delivered to it. Never by length: that would
        remove pending entries. Raises `GroupLost`.
        """
        async with _bounded():
            try:
                groups = await self._redis.xinfo_groups(STREAM)
            except ResponseError as error:
                raise _translated(error) from None
            needed = [await self._oldest_needed(group) for group in groups]
            if not needed:
                return 0
            oldest = min(needed, key=_order)
            return int(await self._redis.xtrim(STREAM, minid=oldest, approximate=False))

    async def forget_idle(self, *, idle: timedelta) -> int:
        """Delete the names that hold nothing and were silent for longer than `idle`; return how many. Never its own.

        A name that comes back is made anew by its first read. A server that runs no script for us keeps its names,
        which harms nobody. Raises `GroupLost`.
        """
        idle_ms = int(idle.total_seconds() * 1000)
        async with _bounded():
            try:
                return int(await self._redis.eval(_FORGET_IDLE, 1, STREAM, GROUP, self._name, idle_ms))
            except ResponseError as error:
                translated = _translated(error)
                if isinstance(translated, GroupLost):
                    raise translated from None
                return 0

    async def _oldest_needed(self, group: Mapping[str, Any]) -> bytes:
        if group["pending"]:
            summary = await self._redis.xpending(STREAM, group["name"])
            with suppress(KeyError, TypeError):
                if summary["min"] is not None:
                    return bytes(summary["min"])
        return bytes(group["last-delivered-id"])


def _translated(error: ResponseError) -> Exception:
    is_lost = str(error).startswith(("NOGROUP", "UNBLOCKED", "no such key"))
    return GroupLost() if is_lost else error


def _bounded(block: timedelta = timedelta(0)) -> asyncio.Timeout:
    return asyncio.timeout((block + _ANSWER_TIMEOUT).total_seconds())


def _order(stream_id: bytes) -> tuple[int, int]:
    milliseconds, _, sequence = stream_id.partition(b"-")
    return int(milliseconds), int(sequence or 0)
