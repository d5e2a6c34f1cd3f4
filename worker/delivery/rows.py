"""What the engine knows of a delivery that it holds, read from the outbox in the transaction of the claim."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from reconciler.plan import SETTLE
from reconciler.states import OPEN_STATES
from reconciler.tables import DELIVERIES, NOTICES, NOTIFICATIONS
from worker.channels.protocol import SentBefore
from worker.delivery.requests import Request, read_requests
from worker.delivery.siblings import Sibling, read_members, read_siblings

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
    DELIVERIES.c.created_at,
    DELIVERIES.c.carrier_id,
)


@dataclass(frozen=True, slots=True)
class Notice:
    """The notice that a delivery is about."""

    kind: str
    subject: str
    detail: str
    opened_at: datetime
    is_closed: bool


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
    created_at: datetime
    request: Request | None
    notice: Notice | None
    siblings: Sequence[Sibling] = ()
    carrier_id: int | None = None  # the delivery that it is told together with
    told_with: Sequence[Request] = ()  # of an end: the requests of the message that told of it

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
    requests = await read_requests(connection, sorted({row.notification_id for row in rows} - {None}))
    notices = await _notices(connection, sorted({row.notice_id for row in rows} - {None}))
    siblings = await read_siblings(connection, [row for row in rows if row.notification_id and row.purpose != "open"])
    told_with = await read_members(
        connection,
        {one.lead_id for row in rows if row.purpose == SETTLE for one in siblings.get(row.id, ()) if one.sent},
    )
    place = {delivery_id: index for index, delivery_id in enumerate(ids)}
    return [
        _claimed(
            row, requests.get(row.notification_id), notices.get(row.notice_id), siblings.get(row.id, ()), told_with
        )
        for row in sorted(rows, key=lambda row: place[row.id])
    ]


async def settled_among(connection: AsyncConnection, rows: Iterable[Claimed]) -> frozenset[int]:
    """Return those of the rows' notifications that are over by now although the row says that they wait."""
    ids = sorted({row.opens for row in rows if row.opens is not None})
    if not ids:
        return frozenset()
    statement = select(NOTIFICATIONS.c.id).where(NOTIFICATIONS.c.id.in_(ids), NOTIFICATIONS.c.state.not_in(_OPEN_WORDS))
    return frozenset((await connection.execute(statement)).scalars())


async def _notices(connection: AsyncConnection, ids: Sequence[int]) -> Mapping[int, Notice]:
    if not ids:
        return {}
    rows = await connection.execute(select(NOTICES).where(NOTICES.c.id.in_(ids)))
    return {
        row.id: Notice(row.kind, row.subject, row.detail, row.opened_at, is_closed=row.closed_at is not None)
        for row in rows
    }


def _told_with(
    row: Row[Any], siblings: Sequence[Sibling], members: Mapping[int, Sequence[Request]]
) -> Sequence[Request]:
    """Return the requests of the first message that told of the row's request, where it is about its end."""
    if row.purpose != SETTLE:
        return ()
    return next((members[one.lead_id] for one in siblings if one.sent and one.lead_id in members), ())


def _claimed(
    row: Row[Any],
    request: Request | None,
    notice: Notice | None,
    siblings: Sequence[Sibling],
    told_with: Mapping[int, Sequence[Request]],
) -> Claimed:
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
        created_at=row.created_at,
        request=request,
        notice=notice,
        siblings=siblings,
        carrier_id=row.carrier_id,
        told_with=_told_with(row, siblings, told_with),
    )
