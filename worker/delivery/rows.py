"""What the engine knows of a delivery that it holds, read from the outbox in the transaction of the claim."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from reconciler.enrolled import REFERENCE_COLUMNS, Enrolled, enrolled_from
from reconciler.plan import SETTLE
from reconciler.reasons import DeliveryStatus
from reconciler.states import OPEN_STATES
from reconciler.tables import DELIVERIES, NOTICES, NOTIFICATIONS
from worker.channels.protocol import SentBefore

_OPEN_WORDS = sorted(state.value for state in OPEN_STATES)
_DELIVERY_COLUMNS: Sequence[ColumnElement[Any]] = (
    DELIVERIES.c.id,
    DELIVERIES.c.notification_id,
    DELIVERIES.c.notice_id,
    DELIVERIES.c.destination,
    DELIVERIES.c.channel,
    DELIVERIES.c.recipient,
    DELIVERIES.c.purpose,
    DELIVERIES.c.message_key,
    DELIVERIES.c.route,
    DELIVERIES.c.status,
    DELIVERIES.c.reason,
    DELIVERIES.c.attempts,
    DELIVERIES.c.forgiven_attempts,
    DELIVERIES.c.begun_at,
    DELIVERIES.c.give_up_at,
)

_REQUEST_COLUMNS: Sequence[ColumnElement[Any]] = (
    *REFERENCE_COLUMNS,
    NOTIFICATIONS.c.agent_name,
    NOTIFICATIONS.c.requester,
    NOTIFICATIONS.c.public_session_id,
    NOTIFICATIONS.c.first_seen_at,
    NOTIFICATIONS.c.state_changed_at,
    NOTIFICATIONS.c.dismissed_at,
)
_SIBLING_COLUMNS: Sequence[ColumnElement[Any]] = (
    DELIVERIES.c.id,
    DELIVERIES.c.notification_id,
    DELIVERIES.c.destination,
    DELIVERIES.c.recipient,
    DELIVERIES.c.purpose,
    DELIVERIES.c.status,
    DELIVERIES.c.message_key,
    DELIVERIES.c.provider_ref,
    DELIVERIES.c.next_attempt_at,
    DELIVERIES.c.begun_at,
    DELIVERIES.c.finished_at,
)


@dataclass(frozen=True, slots=True)
class Request:
    """The notification that a delivery is about."""

    enrolled: Enrolled
    agent_name: str | None
    requester: str | None
    public_session_id: str | None
    first_seen_at: datetime
    state_changed_at: datetime
    is_dismissed: bool


@dataclass(frozen=True, slots=True)
class Notice:
    """The notice that a delivery is about."""

    kind: str
    subject: str
    detail: str
    opened_at: datetime
    is_closed: bool


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another message about the same request to the same recipient of the same destination."""

    purpose: str
    status: DeliveryStatus
    next_attempt_at: datetime
    sent: SentBefore | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that is ours for now; exactly one of `request` and `notice` is there."""

    id: int
    destination: str
    channel: str
    recipient: str
    purpose: str
    message_key: str
    route: str
    reason: str
    attempts: int
    forgiven_attempts: int
    begun_at: datetime | None
    give_up_at: datetime | None
    request: Request | None
    notice: Notice | None
    siblings: Sequence[Sibling] = ()

    @property
    def is_settle(self) -> bool:
        """Answer whether this tells the end of a request, which needs no confirmation."""
        return self.purpose == SETTLE

    @property
    def opens(self) -> int | None:
        """Return the id of the notification that this says is waiting; None for a settle and a notice."""
        return self.request.enrolled.id if self.request is not None and not self.is_settle else None

    @property
    def tries(self) -> int:
        """Return how many tries count for back-off and bounds: those since the last redrive."""
        return self.attempts - self.forgiven_attempts

    @property
    def sent_before(self) -> Sequence[SentBefore]:
        """Return what the recipient already has about the request, oldest first."""
        return sorted((row.sent for row in self.siblings if row.sent is not None), key=lambda sent: sent.sent_at)


async def read_rows(connection: AsyncConnection, ids: Sequence[int]) -> list[Claimed]:
    """Return the deliveries with what they are about, in the order of `ids`."""
    if not ids:
        return []
    rows = (await connection.execute(select(*_DELIVERY_COLUMNS).where(DELIVERIES.c.id.in_(ids)))).all()
    requests = await _requests(connection, sorted({row.notification_id for row in rows} - {None}))
    notices = await _notices(connection, sorted({row.notice_id for row in rows} - {None}))
    siblings = await _siblings(connection, [row for row in rows if row.notification_id and row.purpose != "open"])
    place = {delivery_id: index for index, delivery_id in enumerate(ids)}
    return [
        _claimed(row, requests.get(row.notification_id), notices.get(row.notice_id), siblings.get(row.id, ()))
        for row in sorted(rows, key=lambda row: place[row.id])
    ]


async def settled_among(connection: AsyncConnection, rows: Iterable[Claimed]) -> frozenset[int]:
    """Return those of the rows' notifications that are over by now although the row says that they wait."""
    ids = sorted({row.opens for row in rows if row.opens is not None})
    if not ids:
        return frozenset()
    statement = select(NOTIFICATIONS.c.id).where(NOTIFICATIONS.c.id.in_(ids), NOTIFICATIONS.c.state.not_in(_OPEN_WORDS))
    return frozenset((await connection.execute(statement)).scalars())


async def _requests(connection: AsyncConnection, ids: Sequence[int]) -> Mapping[int, Request]:
    if not ids:
        return {}
    rows = await connection.execute(select(*_REQUEST_COLUMNS).where(NOTIFICATIONS.c.id.in_(ids)))
    return {
        row.id: Request(
            enrolled_from(row),
            row.agent_name,
            row.requester,
            row.public_session_id,
            row.first_seen_at,
            row.state_changed_at,
            is_dismissed=row.dismissed_at is not None,
        )
        for row in rows
    }


async def _notices(connection: AsyncConnection, ids: Sequence[int]) -> Mapping[int, Notice]:
    if not ids:
        return {}
    rows = await connection.execute(select(NOTICES).where(NOTICES.c.id.in_(ids)))
    return {
        row.id: Notice(row.kind, row.subject, row.detail, row.opened_at, is_closed=row.closed_at is not None)
        for row in rows
    }


async def _siblings(connection: AsyncConnection, rows: Sequence[Row[Any]]) -> Mapping[int, Sequence[Sibling]]:
    """Whoever follows an opening (a settle, a reminder) must know what became of the messages before it."""
    if not rows:
        return {}
    wanted = sorted({row.notification_id for row in rows})
    others = await connection.execute(
        select(*_SIBLING_COLUMNS)
        .where(DELIVERIES.c.notification_id.in_(wanted), DELIVERIES.c.purpose != SETTLE)
        .order_by(DELIVERIES.c.id)
    )
    by_place: dict[tuple[int, str, str], list[Row[Any]]] = defaultdict(list)
    for other in others:
        by_place[other.notification_id, other.destination, other.recipient].append(other)
    return {
        row.id: [
            _sibling(other)
            for other in by_place[row.notification_id, row.destination, row.recipient]
            if other.id != row.id
        ]
        for row in rows
    }


def _sibling(row: Row[Any]) -> Sibling:
    """One that ended without our knowing whether it arrived counts as sent: its end is told too."""
    status = DeliveryStatus(row.status)
    sent = None
    if status is DeliveryStatus.SENT:
        sent = SentBefore(row.message_key, row.purpose, row.provider_ref, row.finished_at)
    elif row.begun_at is not None:
        sent = SentBefore(row.message_key, row.purpose, None, row.begun_at)
    return Sibling(row.purpose, status, row.next_attempt_at, sent)


def _claimed(row: Row[Any], request: Request | None, notice: Notice | None, siblings: Sequence[Sibling]) -> Claimed:
    return Claimed(
        id=row.id,
        destination=row.destination,
        channel=row.channel,
        recipient=row.recipient,
        purpose=row.purpose,
        message_key=row.message_key,
        route=row.route,
        reason=row.reason,
        attempts=row.attempts,
        forgiven_attempts=row.forgiven_attempts,
        begun_at=row.begun_at,
        give_up_at=row.give_up_at,
        request=request,
        notice=notice,
        siblings=siblings,
    )
