"""The sink: it hands each event that may concern a person to Handbell, over a Redis stream.

The runtime awaits `emit` inside the agent's run, for every event and without a bound of its own, and gives up on an
event after three attempts. So everything of no interest is dropped at once, the wait is short and bounded, and
after a timeout a breaker fails fast.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Literal

from cayu.events import Event
from cayu.observability import EventSink
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from .aof import AofPromise
from .breaker import Admission, Breaker
from .errors import HintNotDurable, NotDurableReason, SinkConfigError
from .hint import NAMESPACE_CHARS, Hint
from .loop_clients import LoopClients, RedisClient
from .names import RECOVERY_PREFIX
from .promises import InboxPromise, Promise, StreamPromise
from .wakeup import FOLLOW_UP_EVENTS, hint_of

Ack = Literal["inbox", "aof", "stream"]
FollowUp = Literal["wait", "post"]

MAX_TIMEOUT_SECONDS = 30.0


class RedisStreamSink(EventSink):
    """A Cayu `EventSink` whose `emit` returns only when the hint is durable.

    `namespace` names the runtime's database, as in Handbell's `[[sources]]`. `ack` is what durable means:
    `"inbox"` (the consumer committed the row), `"aof"` (Redis fsynced it) or `"stream"` (Redis has it, maybe only in
    memory). `follow_up="post"` adds the frequent types, which can only settle, without waiting. `timeout` bounds one
    emit, in seconds, up to 30.

    An emit that could not be acknowledged raises `HintNotDurable`; the runtime's persisted delivery sends it again
    and the inbox deduplicates. One sink may be used from several event loops and threads. Raises `SinkConfigError`
    for arguments that cannot be used; no error and no `repr` shows the URL.
    """

    def __init__(
        self,
        url: str,
        *,
        namespace: str,
        ack: Ack = "inbox",
        follow_up: FollowUp = "wait",
        timeout: float = 0.5,
        breaker: Breaker | None = None,
    ) -> None:
        if not is_namespace(namespace):
            raise SinkConfigError(f"namespace must be 1 to {NAMESPACE_CHARS} printable characters without spaces")
        if not 0 < timeout <= MAX_TIMEOUT_SECONDS:
            raise SinkConfigError(f"timeout must be above 0 and at most {MAX_TIMEOUT_SECONDS:g} seconds")
        if follow_up not in ("wait", "post"):
            raise SinkConfigError("follow_up must be 'wait' or 'post'")
        self.handbell_namespace = namespace
        self.handbell_ack = ack
        self._posted = FOLLOW_UP_EVENTS if follow_up == "post" else frozenset[str]()
        self._timeout_seconds = timeout
        self._promise = _promise(ack, timeout)
        self._clients = LoopClients(url, timeout_seconds=timeout)
        self._breaker = breaker or Breaker()

    def __repr__(self) -> str:
        """Name the sink without its URL."""
        return f"RedisStreamSink(namespace={self.handbell_namespace!r}, ack={self.handbell_ack!r})"

    async def emit(self, event: Event) -> None:
        """Make a hint of the event and return when it is durable; drop what cannot concern a person.

        Safe to call again with the same event. Raises `HintNotDurable` within the timeout, and `MalformedHint` for
        an identity that is beyond the bounds.
        """
        hint = hint_of(event, self.handbell_namespace)
        if hint is None:
            return
        await self._admit()
        if hint.type in self._posted:
            await self._add(StreamPromise(), hint)
        else:
            await self._add(self._promise, hint)
            self._breaker.record_success()

    async def probe(self) -> bool:
        """Say, within the timeout, whether the thing that the chosen promise rests on is there now.

        If it is, an open breaker closes.
        """
        try:
            async with asyncio.timeout(self._timeout_seconds):
                is_there = await self._promise.holds(self._client())
        except (RedisError, OSError):  # a TimeoutError is an OSError
            return False
        if is_there:
            self._breaker.record_probe_success()
        return is_there

    @property
    def is_failing_fast(self) -> bool:
        """Say whether emits are refused without a try, because one timed out lately."""
        return self._breaker.is_open

    async def report_recovery(self, outcome: str, *, recovered: int, state: Mapping[str, str | int]) -> None:
        """Count a recovery round in Redis, for `handbell status`; what cannot be counted now is not."""
        key = RECOVERY_PREFIX + self.handbell_namespace
        pipeline = self._client().pipeline(transaction=False)
        pipeline.hincrby(key, f"rounds_{outcome}", 1)
        pipeline.hincrby(key, "recovered", recovered)
        pipeline.hset(key, mapping={"last_outcome": outcome, **state})
        with contextlib.suppress(RedisError, OSError):
            async with asyncio.timeout(self._timeout_seconds):
                await pipeline.execute()

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        await self._clients.close()

    def _client(self) -> RedisClient:
        return self._clients.current()

    async def _admit(self) -> None:
        admission = self._breaker.admit()
        is_admitted = admission is Admission.PASS or (admission is Admission.PROBE and await self.probe())
        if not is_admitted:
            raise HintNotDurable(NotDurableReason.BREAKER_OPEN)

    async def _add(self, promise: Promise, hint: Hint) -> None:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await promise.add(self._client(), hint)
        except (TimeoutError, RedisTimeoutError):
            self._breaker.record_timeout()
            raise HintNotDurable(NotDurableReason.TIMEOUT) from None
        except HintNotDurable:
            self._breaker.record_timeout()
            raise
        except (RedisConnectionError, OSError):  # their texts name the server
            raise HintNotDurable(NotDurableReason.UNREACHABLE) from None
        except RedisError:
            raise HintNotDurable(NotDurableReason.REFUSED) from None


def is_namespace(text: str) -> bool:
    """Say whether `text` can name a runtime's database."""
    return 0 < len(text) <= NAMESPACE_CHARS and text.isprintable() and not any(char.isspace() for char in text)


def _promise(ack: Ack, timeout_seconds: float) -> Promise:
    match ack:
        case "inbox":
            return InboxPromise(timeout_seconds=timeout_seconds)
        case "aof":
            return AofPromise(timeout_seconds=timeout_seconds)
        case "stream":
            return StreamPromise()
        case _:
            raise SinkConfigError("ack must be 'inbox', 'aof' or 'stream'")
