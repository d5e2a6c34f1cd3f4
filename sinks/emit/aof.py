"""The promise `ack="aof"`: Redis itself has the hint on its disk.

Redis 7.2 and later, and every Valkey, can be asked for exactly that (WAITAOF, https://valkey.io/commands/waitaof,
read 2026-11). It answers an error where the append-only file is off, so it needs no right to read the configuration.
With `appendfsync everysec` it takes 100 to 200 ms, with `always` below 2 ms. Older servers keep the promise only
with `appendfsync always`, which is looked up at the start and every 30 s.
"""

import time
from collections.abc import Callable
from typing import Any

from redis.exceptions import ResponseError

from .errors import HintNotDurable, NotDurableReason
from .hint import Hint
from .loop_clients import RedisClient
from .names import STREAM

RECHECK_SECONDS = 30.0


class AofPromise:
    """The hint is in an append-only file that was fsynced; raises `HintNotDurable` where that cannot be had."""

    def __init__(self, *, timeout_seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._timeout_ms = max(1, int(timeout_seconds * 1000))
        self._now = now
        self._is_older = False  # the server knows no WAITAOF
        self._trusted_until = 0.0  # an older server's configuration was fit until then

    async def add(self, client: RedisClient, hint: Hint) -> None:
        """Add the entry and have the file fsynced, in one round trip."""
        if self._is_older:
            await self._check_older(client)
        pipeline = client.pipeline(transaction=False)
        pipeline.xadd(STREAM, hint.to_fields())
        if not self._is_older:
            pipeline.execute_command("WAITAOF", 1, 0, self._timeout_ms)
        added, *waited = await pipeline.execute(raise_on_error=False)
        if isinstance(added, Exception):
            raise added
        for answer in waited:
            if not await self._is_fsynced(client, answer):
                raise HintNotDurable(NotDurableReason.NOT_FSYNCED)

    async def holds(self, client: RedisClient) -> bool:
        """Ask for an fsync, or look at an older server's configuration afresh."""
        self._is_older, self._trusted_until = False, 0.0
        try:
            answer: object = await client.execute_command("WAITAOF", 1, 0, self._timeout_ms)
        except ResponseError as error:
            answer = error
        try:
            return await self._is_fsynced(client, answer)
        except HintNotDurable:
            return False

    async def _is_fsynced(self, client: RedisClient, answer: object) -> bool:
        if isinstance(answer, ResponseError):
            if "unknown command" not in str(answer).lower():
                raise HintNotDurable(NotDurableReason.NO_AOF)
            self._is_older = True
            await self._check_older(client)  # true now is true of the entry just added: each write is fsynced first
            return True
        if isinstance(answer, Exception):
            raise answer
        return isinstance(answer, list) and answer[0] >= 1

    async def _check_older(self, client: RedisClient) -> None:
        if self._now() < self._trusted_until:
            return
        try:
            persistence = await client.info("persistence")
            fsync = _value(await client.config_get("appendfsync"))
            policy = _value(await client.config_get("maxmemory-policy"))
        except ResponseError:  # a managed server may forbid CONFIG: unknown is not kept
            raise HintNotDurable(NotDurableReason.NO_AOF) from None
        is_written = persistence.get("aof_enabled") == 1 and persistence.get("aof_last_write_status") == "ok"
        if not is_written or fsync != "always" or policy != "noeviction":
            raise HintNotDurable(NotDurableReason.NO_AOF)
        self._trusted_until = self._now() + RECHECK_SECONDS


def _value(configuration: dict[Any, Any]) -> str:
    for value in configuration.values():
        return value.decode() if isinstance(value, bytes) else str(value)
    return ""
