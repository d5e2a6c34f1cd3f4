"""Commits what senders push: batches that wait at the same moment share one transaction (group commit).

One writer per namespace. While it commits, newcomers wait and form the next group, so nobody waits for company and
a lone request is written at once. Every answer is given after the commit that holds its observations.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.enrolled import Enrolled
from reconciler.handoff_store import HandoffStore
from reconciler.notifications import Notifications
from reconciler.reasons import Door
from reconciler.references import Observation, Reference
from worker.web.models import MAX_OBSERVATIONS, MAX_VERIFY
from worker.web.refusals import Code, Refused

_MAX_GROUP_OBSERVATIONS = 1000
_MAX_WAITING = 1000


@dataclass(frozen=True, slots=True)
class Batch:
    """What one request says; `complete_session` names the session of which it shows everything that is pending."""

    observations: Sequence[Observation]
    complete_session: str | None = None


@dataclass(frozen=True, slots=True)
class _Waiting:
    batch: Batch
    answer: asyncio.Future[Sequence[Reference]]


class Intake:
    """The one writer of a namespace's pushed observations in this process; `max_group` 1 switches the merging off."""

    def __init__(
        self,
        namespace: str,
        notifications: Notifications,
        store: HandoffStore,
        *,
        max_group: int = 100,
        max_waiting: int = _MAX_WAITING,
    ) -> None:
        self._namespace = namespace
        self._notifications = notifications
        self._store = store
        self._max_group = max_group
        self._max_waiting = max_waiting
        self._waiting: deque[_Waiting] = deque()
        self._writer: asyncio.Task[None] | None = None

    async def submit(self, batch: Batch) -> Sequence[Reference]:
        """Return the references to verify once everything in `batch` is committed; idempotent.

        At least once: where it raises or is cancelled the batch may be committed or not, and can be sent again.
        Raises Refused where too many wait, and SQLAlchemy's errors.
        """
        if len(self._waiting) >= self._max_waiting:
            raise Refused(Code.DATABASE_BUSY, "too many requests wait to be committed")
        waiting = _Waiting(batch, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        return await waiting.answer

    async def _write(self) -> None:
        while group := self._take():
            try:
                found = await self._commit([waiting.batch for waiting in group])
            except Exception as error:  # whatever it is belongs to those who wait for it
                _fail(group, error)
            except BaseException:
                _fail(group + list(self._waiting), Refused(Code.SHUTTING_DOWN, "the receiver is stopping"))
                raise
            else:
                for waiting in group:
                    if not waiting.answer.done():
                        waiting.answer.set_result(_to_verify(waiting.batch, found))

    def _take(self) -> list[_Waiting]:
        group: list[_Waiting] = []
        count = 0
        while self._waiting and len(group) < self._max_group:
            if self._waiting[0].answer.done():  # its request has given up meanwhile
                self._waiting.popleft()
                continue
            count += len(self._waiting[0].batch.observations)
            if group and count > _MAX_GROUP_OBSERVATIONS:
                break
            group.append(self._waiting.popleft())
        return group

    async def _commit(self, batches: Sequence[Batch]) -> Mapping[str, Sequence[Enrolled]]:
        observations = [item for batch in batches for item in batch.observations]
        await self._store.complete_requests(observations)
        for part in rounds(observations):
            await self._notifications.apply(self._namespace, part, door=Door.PUSH)
        sessions = [batch.complete_session for batch in batches if batch.complete_session is not None]
        return await self._store.open_in_sessions(sessions, limit=MAX_VERIFY + MAX_OBSERVATIONS)


def rounds(observations: Sequence[Observation]) -> list[list[Observation]]:
    """Split into parts in which no reference stands twice, each reference's observations in the order given.

    Applied together the last would win, and what an earlier one alone brings (its request) would be lost.
    """
    parts: list[list[Observation]] = []
    counts: dict[str, int] = defaultdict(int)
    for item in observations:
        number = counts[item.reference.attention_id]
        counts[item.reference.attention_id] += 1
        if number == len(parts):
            parts.append([])
        parts[number].append(item)
    return parts


def _to_verify(batch: Batch, found: Mapping[str, Sequence[Enrolled]]) -> Sequence[Reference]:
    if batch.complete_session is None:
        return ()
    shown = {item.reference.attention_id for item in batch.observations}
    others = [row.reference for row in found.get(batch.complete_session, ()) if row.reference.attention_id not in shown]
    return others[:MAX_VERIFY]


def _fail(group: Sequence[_Waiting], error: Exception) -> None:
    for waiting in group:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)
