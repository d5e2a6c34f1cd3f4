"""What else was told: to the same place about the same request, and in the same message about others."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from reconciler.digests import carried_by
from reconciler.plan import SETTLE
from reconciler.reasons import DeliveryStatus
from reconciler.tables import DELIVERIES
from worker.channels.protocol import SentBefore
from worker.delivery.requests import Request, read_requests

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
    DELIVERIES.c.carrier_id,
)


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another message about the same request to the same recipient of the same destination."""

    purpose: str
    status: DeliveryStatus
    next_attempt_at: datetime
    sent: SentBefore | None
    lead_id: int


async def read_siblings(connection: AsyncConnection, rows: Sequence[Row[Any]]) -> Mapping[int, Sequence[Sibling]]:
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


async def read_members(connection: AsyncConnection, leads: Iterable[int]) -> Mapping[int, Sequence[Request]]:
    """Return the requests of each message that told of several, by its lead."""
    columns = DELIVERIES.c
    members: dict[int, set[int]] = defaultdict(set)
    for carried in await carried_by(connection, set(leads), {DeliveryStatus.SENT}):
        members[carried.carrier_id].add(carried.notification_id)
    if not members:
        return {}
    leading = await connection.execute(
        select(columns.id, columns.notification_id).where(columns.id.in_(sorted(members)))
    )
    for lead_id, notification_id in leading:
        members[lead_id].add(notification_id)
    requests = await read_requests(connection, sorted({one for ids in members.values() for one in ids}))
    return {lead: [requests[one] for one in sorted(ids) if one in requests] for lead, ids in members.items()}


def _sibling(row: Row[Any]) -> Sibling:
    """One that ended without our knowing whether it arrived counts as sent: its end is told too."""
    status = DeliveryStatus(row.status)
    sent = None
    if status is DeliveryStatus.SENT:
        sent = SentBefore(row.message_key, row.purpose, row.provider_ref, row.finished_at)
    elif row.begun_at is not None:
        sent = SentBefore(row.message_key, row.purpose, None, row.begun_at)
    return Sibling(row.purpose, status, row.next_attempt_at, sent, row.carrier_id or row.id)
