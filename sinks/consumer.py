"""The consumer: reads hints off the stream, commits them to the inbox, and only then acknowledges and answers.

Whatever happens between two lines here, an entry is either still pending (read again) or a committed row (a repeat
is found by its key): nothing is lost and nothing is there twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from config.steps import Step, StepHook, ignore_step
from sinks.batch import Batch, read_batch
from sinks.commit import commit
from sinks.hint_stream import NEW, OWN_PENDING, GroupLost, HintStream, RawEntry
from sinks.inbox import HintKey, Inbox
from sinks.incidents import Incident, Incidents
from sinks.outage import Outage

log = structlog.get_logger()
T = TypeVar("T")

OnCommitted = Callable[[frozenset[tuple[str, str]]], None]


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often the consumer does what is not reading."""

    block: timedelta = timedelta(seconds=1)  # the longest wait for an entry; everything below waits as long at most
    alive_every: timedelta = timedelta(seconds=1)
    alive_ttl: timedelta = timedelta(seconds=5)  # how long emitters believe in a consumer that went silent
    claim_every: timedelta = timedelta(seconds=10)
    claim_idle: timedelta = timedelta(seconds=60)
    trim_every: timedelta = timedelta(seconds=10)
    forget_every: timedelta = timedelta(hours=1)
    forget_idle: timedelta = timedelta(days=1)  # a name that holds nothing and was silent for so long is deleted
    first_retry: timedelta = timedelta(milliseconds=100)
    last_retry: timedelta = timedelta(seconds=5)


class Stopped(Exception):  # noqa: N818  # it states a fact
    """The consumer was told to stop while it waited for the database; nothing was acknowledged."""


class Consumer:
    """Consumer `name` of the group; the name is stable over restarts, and two processes need two.

    `on_committed` gets the sessions (namespace, session_id) that have new rows, after their commit; `on_gap` is
    called when the stream may have lost something, so that a sweep follows. Both must return at once.
    """

    def __init__(
        self,
        redis: Redis,
        inbox: Inbox,
        incidents: Incidents,
        *,
        name: str,
        on_committed: OnCommitted,
        on_gap: Callable[[], None],
        on_step: StepHook = ignore_step,
        cadence: Cadence = Cadence(),
    ) -> None:
        self._stream = HintStream(redis, name)
        self._inbox = inbox
        self._incidents = incidents
        self._on_committed = on_committed
        self._on_gap = on_gap
        self._on_step = on_step
        self._cadence = cadence
        self._redis_outage = Outage("stream")
        self._database_outage = Outage("inbox")
        self._is_group_lost = False
        self._is_replaying = True  # reading what was delivered to this name before and is not acknowledged
        self._due: dict[str, float] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Consume until told to stop. An unreachable Redis or database is waited for, whatever it takes."""
        retry = self._cadence.first_retry
        while not stop.is_set():
            try:
                await self._open(stop)
                while not stop.is_set():
                    await self._turn(stop)
                    retry = self._cadence.first_retry
            except Stopped:
                return
            except GroupLost:
                self._is_group_lost = True
            except (RedisError, OSError) as error:
                self._redis_outage.begin(error)
                await _wait(stop, retry)
                retry = min(retry * 2, self._cadence.last_retry)

    async def _open(self, stop: asyncio.Event) -> None:
        """Have a group, say so if that closed a gap, and begin with what this consumer left unacknowledged."""
        is_new = await self._stream.create_group()
        self._redis_outage.end()
        self._is_replaying = True
        if self._is_group_lost:
            await self._record_gap(stop, Incident.GROUP_LOST, "the stream's consumer group was gone")
        elif is_new and not await self._persist(stop, self._inbox.is_empty):
            await self._record_gap(stop, Incident.GROUP_MISSING, "the stream had no group, though hints came before")
        self._is_group_lost = False

    async def _turn(self, stop: asyncio.Event) -> None:
        await self._keep_up(stop)
        if self._is_replaying:
            entries = await self._stream.read(OWN_PENDING, block=timedelta(0))
            self._is_replaying = bool(entries)
            await self._take(stop, entries, is_repeated=True)
        else:
            await self._take(stop, await self._read_new(stop), is_repeated=False)
        self._redis_outage.end()

    async def _read_new(self, stop: asyncio.Event) -> Sequence[RawEntry]:
        reading = asyncio.ensure_future(self._stream.read(NEW, block=self._cadence.block))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            # What is delivered to a read that is cancelled here stays pending, and the next start begins with it.
            return reading.result() if reading.done() else ()
        finally:
            reading.cancel()
            stopping.cancel()
            await asyncio.gather(reading, stopping, return_exceptions=True)

    async def _take(self, stop: asyncio.Event, entries: Sequence[RawEntry], *, is_repeated: bool) -> None:
        if not entries:
            return
        self._on_step(Step.RECEIVED)
        batch = read_batch(entries)
        inserted, tokens = await self._persist(stop, lambda: commit(self._inbox, batch.received, batch.dead))
        if batch.trimmed:
            detail = f"{len(batch.trimmed)} pending entries were removed before they were read"
            await self._record_gap(stop, Incident.ENTRIES_TRIMMED, detail)
        self._on_step(Step.INBOX_COMMITTED)
        await self._stream.acknowledge(batch.stream_ids, tokens)
        self._on_step(Step.REPLIED)
        self._tell(batch, inserted, is_repeated=is_repeated)

    def _tell(self, batch: Batch, inserted: frozenset[HintKey], *, is_repeated: bool) -> None:
        # killed after the commit, before anybody was told:  commit | kill | restart, same entries, nothing inserted
        # so a repeated batch tells of all its sessions.
        keys = [(item.hint.namespace, item.hint.session_id) for item in batch.received] if is_repeated else []
        sessions = frozenset([*keys, *((key.namespace, key.session_id) for key in inserted)])
        if sessions:
            self._on_committed(sessions)
        if batch.dead:
            log.warning("hints.malformed", count=len(batch.dead), reasons=sorted({dead.reason for dead in batch.dead}))

    async def _keep_up(self, stop: asyncio.Event) -> None:
        if self._is_due("alive", self._cadence.alive_every) and await self._can_write():
            await self._stream.show_alive(self._cadence.alive_ttl)
        if self._is_due("claim", self._cadence.claim_every):
            claimed = await self._stream.claim(idle=self._cadence.claim_idle)
            gone = [RawEntry(stream_id, {}) for stream_id in claimed.gone]
            await self._take(stop, [*claimed.entries, *gone], is_repeated=True)
        if self._is_due("trim", self._cadence.trim_every):
            await self._stream.trim()
        if self._is_due("forget", self._cadence.forget_every):
            await self._forget_idle()

    async def _forget_idle(self) -> None:
        """Delete names that are no longer used: a container that starts anew may have another each time."""
        forgotten = await self._stream.forget_idle(idle=self._cadence.forget_idle)
        if forgotten:
            log.info("consumers.forgotten", count=forgotten)

    def _is_due(self, what: str, every: timedelta) -> bool:
        now = asyncio.get_running_loop().time()
        if now < self._due.get(what, 0.0):
            return False
        self._due[what] = now + every.total_seconds()
        return True

    async def _can_write(self) -> bool:
        try:
            await self._inbox.check_writable()
        except Exception as error:  # whatever it is, nothing may be promised now
            self._database_outage.begin(error, is_expected=_is_expected(error))
            return False
        self._database_outage.end()
        return True

    async def _record_gap(self, stop: asyncio.Event, kind: Incident, detail: str) -> None:
        log.warning("stream.gap", kind=kind.value)
        await self._persist(stop, lambda: self._incidents.record(kind, detail))
        self._on_gap()

    async def _persist(self, stop: asyncio.Event, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work` until the database takes it, however long it is away; meanwhile nothing is acknowledged."""
        retry = self._cadence.first_retry
        while True:
            try:
                result = await work()
            except Exception as error:
                self._database_outage.begin(error, is_expected=_is_expected(error))
                await _wait(stop, retry)
                if stop.is_set():
                    raise Stopped from None
                retry = min(retry * 2, self._cadence.last_retry)
            else:
                self._database_outage.end()
                return result


def _is_expected(error: Exception) -> bool:
    return isinstance(error, SQLAlchemyError | OSError)


async def _wait(stop: asyncio.Event, duration: timedelta) -> None:
    try:
        async with asyncio.timeout(duration.total_seconds()):
            await stop.wait()
    except TimeoutError:
        return
