"""Keeps together in SQL what is told together: `carrier_id` of a delivery names the one that carries it.

The carried ones are never due by themselves. Whoever takes the lead away from a group (it settled, was dismissed, is
held) gives it to the next, in the same transaction.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from config.statements import insert_ignoring
from reconciler.plan import OPEN, Moved, NewDelivery
from reconciler.plan.gathering import DIGEST_AT_MOST, STORM_WINDOW, Gathered, Lead, Storm, gather, occasion
from reconciler.reasons import DeliveryStatus
from reconciler.tables import DELIVERIES, DESTINATIONS

_LEADS_AT_MOST = 1000
_WAITING = frozenset({DeliveryStatus.PENDING, DeliveryStatus.UNKNOWN})
_CARRIED_COLUMNS: Sequence[ColumnElement[Any]] = (
    DELIVERIES.c.id,
    DELIVERIES.c.carrier_id,
    DELIVERIES.c.notification_id,
    DELIVERIES.c.status,
)
_LEAD_COLUMNS: Sequence[ColumnElement[Any]] = (
    DELIVERIES.c.id,
    DELIVERIES.c.destination,
    DELIVERIES.c.recipient,
    DELIVERIES.c.purpose,
    DELIVERIES.c.due_at,
)


async def arrange(connection: AsyncConnection, rows: Sequence[NewDelivery], now: datetime) -> Gathered:
    """Decide which of the new rows go together, on what stands in the outbox."""
    joining = [row for row in rows if row.window is not None or row.storm_limit is not None]
    leads = await _leads(connection, joining, now)
    limited = sorted({row.destination for row in rows if row.storm_limit is not None and row.purpose == OPEN})
    storms = await _storms(connection, limited)
    gathered = gather(rows, leads, storms, now)
    if limited:
        await _keep_storms(connection, gathered.storms)
    return gathered


async def succeed(connection: AsyncConnection, gone: Collection[int]) -> None:
    """Give the lead of groups whose lead is `gone` (no longer to be sent) to the first of those that it carried."""
    if not gone:
        return
    heirs: dict[int, int] = {}
    for row in await carried_by(connection, gone, _WAITING):
        if row.id not in gone:
            heirs.setdefault(row.carrier_id, row.id)
    columns = DELIVERIES.c
    for lead, heir in sorted(heirs.items()):
        await connection.execute(
            update(DELIVERIES).where(columns.carrier_id == lead, columns.id != heir).values(carrier_id=heir)
        )
        await connection.execute(update(DELIVERIES).where(columns.id == heir).values(carrier_id=None))


async def carried_by(
    connection: AsyncConnection, leads: Collection[int], statuses: Collection[DeliveryStatus]
) -> list[Row[Any]]:
    """Return `id`, `carrier_id` and `notification_id` of what the leads carry, in the order of ids."""
    if not leads:
        return []
    rows = await connection.execute(carried_statement(leads))
    return [row for row in rows if row.status in statuses]


async def held_with(
    connection: AsyncConnection, leads: Collection[int], statuses: Collection[DeliveryStatus]
) -> tuple[list[int], frozenset[int]]:
    """Lock what the leads carry, without waiting; return it, and the leads of which somebody else holds a part now."""
    carried = await carried_by(connection, leads, statuses)
    if not carried or connection.dialect.name == "sqlite":
        return [row.id for row in carried], frozenset()
    found = await connection.execute(
        select(DELIVERIES.c.id)
        .where(DELIVERIES.c.id.in_([row.id for row in carried]))
        .order_by(DELIVERIES.c.id)
        .with_for_update(skip_locked=True)
    )
    ours = set(found.scalars())
    disturbed = frozenset(row.carrier_id for row in carried if row.id not in ours)
    return [row.id for row in carried if row.carrier_id not in disturbed], disturbed


def carried_statement(leads: Collection[int]) -> Select[Any]:
    """Return the question for what is carried.

    It does not name the status: SQLite would take the index of that, and look at all that waits.
    """
    return select(*_CARRIED_COLUMNS).where(DELIVERIES.c.carrier_id.in_(sorted(leads))).order_by(DELIVERIES.c.id)


async def join_moved(connection: AsyncConnection, moved: Sequence[Moved]) -> None:
    """Let those that were moved to the same time, for the same place and occasion, go together again."""
    groups: dict[tuple[str, str, str, datetime], list[int]] = defaultdict(list)
    for row in moved:
        if row.window is not None:
            groups[row.destination, row.recipient, occasion(row.purpose), row.due_at].append(row.delivery_id)
    for ids in groups.values():
        lead, *carried = sorted(ids)[:DIGEST_AT_MOST]
        if carried:
            await connection.execute(
                update(DELIVERIES)
                .where(DELIVERIES.c.id.in_(carried), DELIVERIES.c.status == DeliveryStatus.PENDING.value)
                .values(carrier_id=lead)
            )


async def _leads(connection: AsyncConnection, rows: Sequence[NewDelivery], now: datetime) -> list[Lead]:
    """Return what the rows may join, locked; one that is due, or that somebody else holds now, cannot be joined."""
    if not rows:
        return []
    columns = DELIVERIES.c
    places = sorted({row.place for row in rows})
    found = (
        await connection.execute(
            select(*_LEAD_COLUMNS)
            .where(
                columns.status == DeliveryStatus.PENDING.value,
                columns.carrier_id.is_(None),
                columns.begun_at.is_(None),
                columns.notification_id.is_not(None),
                columns.attempts == 0,
                columns.destination.in_({destination for destination, _ in places}),
                tuple_(columns.destination, columns.recipient).in_(places),
                columns.next_attempt_at == columns.due_at,
                columns.due_at > now,
                columns.due_at <= max(row.due_at for row in rows) + STORM_WINDOW,
                columns.due_at >= min(row.due_at - (row.window or STORM_WINDOW) for row in rows),
            )
            .order_by(columns.due_at)
            .limit(_LEADS_AT_MOST)
            .with_for_update(skip_locked=True)
        )
    ).all()
    carried = await carried_by(connection, [row.id for row in found], _WAITING)
    counted = Counter(row.carrier_id for row in carried)
    return [Lead(row.id, row.destination, row.recipient, row.purpose, row.due_at, 1 + counted[row.id]) for row in found]


async def _storms(connection: AsyncConnection, destinations: Sequence[str]) -> Mapping[str, Storm]:
    if not destinations:
        return {}
    columns = DESTINATIONS.c
    await connection.execute(insert_ignoring(connection, DESTINATIONS), [{"name": name} for name in destinations])
    found = await connection.execute(
        select(columns.name, columns.storm_since_at, columns.storm_openings)
        .where(columns.name.in_(destinations), columns.storm_since_at.is_not(None))
        .order_by(columns.name)
        .with_for_update()
    )
    return {row.name: Storm(row.storm_since_at, row.storm_openings) for row in found}


async def _keep_storms(connection: AsyncConnection, storms: Mapping[str, Storm]) -> None:
    for name, storm in sorted(storms.items()):
        await connection.execute(
            update(DESTINATIONS)
            .where(DESTINATIONS.c.name == name)
            .values(storm_since_at=storm.since_at, storm_openings=storm.openings)
        )
