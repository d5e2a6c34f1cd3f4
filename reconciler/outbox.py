"""Stores plans in the transaction of the change that caused them; the unique constraint makes that idempotent."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, insert, null, or_, select, union, update
from sqlalchemy.ext.asyncio import AsyncConnection

from config.statements import insert_ignoring
from reconciler import digests
from reconciler.plan import Decision, Moved, NewDelivery, Plan, Told
from reconciler.plan.gathering import Group
from reconciler.reasons import DeliveryStatus
from reconciler.tables import DECISIONS, DELIVERIES

_PLANNING = int.from_bytes(b"planning") >> 1  # fits a signed bigint

_MOVE = (
    update(DELIVERIES)
    .where(
        DELIVERIES.c.id == bindparam("row_id"),
        or_(DELIVERIES.c.status == DeliveryStatus.PENDING, DELIVERIES.c.status == DeliveryStatus.CANCELLED),
        DELIVERIES.c.begun_at.is_(None),
    )
    .values(
        status=DeliveryStatus.PENDING.value,
        reason=bindparam("new_reason"),
        route=bindparam("new_route"),
        due_at=bindparam("new_due_at"),
        next_attempt_at=bindparam("new_due_at"),
        finished_at=null(),
        carrier_id=null(),
    )
)


async def take_turn(connection: AsyncConnection) -> None:
    """Wait until nobody else plans, and let nobody plan until the transaction ends; on SQLite that is so anyway.

    Where messages are told together a plan for one request touches the deliveries of others, and no order of locks
    is one for all. Take it after the locks of requests and before those of deliveries.
    """
    if connection.dialect.name != "sqlite":
        await connection.execute(select(func.pg_advisory_xact_lock(_PLANNING)))


async def lock(connection: AsyncConnection, notification_ids: Iterable[int], also: Iterable[int] = ()) -> None:
    """Keep others from the deliveries of these notifications, and from what those carry, until the transaction ends.

    `also` are the ids of other deliveries that the transaction will touch.

    Whoever locks several deliveries does it by this, in the order of their ids and before anything else of the
    outbox: two transactions that each hold what the other wants would wait for ever. Where a row may be passed over
    it is passed over instead of waited for. SQLite has one writer anyway.
    """
    wanted = sorted(notification_ids)
    if not wanted or connection.dialect.name == "sqlite":
        return
    columns, carried = DELIVERIES.c, DELIVERIES.alias("carried")
    ids = union(
        select(columns.id).where(columns.notification_id.in_(wanted)),
        select(carried.c.id)
        .select_from(carried.join(DELIVERIES, carried.c.carrier_id == columns.id))
        .where(columns.notification_id.in_(wanted)),
        select(columns.id).where(columns.id.in_(sorted(also))),
    ).subquery()
    locked = DELIVERIES.alias("locked")
    await connection.execute(
        select(locked.c.id).where(locked.c.id.in_(select(ids.c.id))).order_by(locked.c.id).with_for_update()
    )


async def told_of(connection: AsyncConnection, notification_ids: Iterable[int]) -> Mapping[int, Sequence[Told]]:
    """Return the deliveries of each notification, locked against a claim until the transaction ends."""
    wanted = sorted(notification_ids)
    if not wanted:
        return {}
    await lock(connection, wanted)
    columns = DELIVERIES.c
    rows = await connection.execute(
        select(
            columns.notification_id,
            columns.id,
            columns.destination,
            columns.channel,
            columns.recipient,
            columns.purpose,
            columns.status,
            columns.route,
            columns.reason,
            columns.due_at,
            columns.created_at,
            columns.finished_at,
            columns.attempts,
            columns.begun_at,
        )
        .where(columns.notification_id.in_(wanted))
        .order_by(columns.id)
    )
    told: dict[int, list[Told]] = defaultdict(list)
    for row in rows:
        told[row.notification_id].append(
            Told(
                row.id,
                row.destination,
                row.channel,
                row.recipient,
                row.purpose,
                DeliveryStatus(row.status),
                row.route,
                row.reason,
                row.due_at or row.created_at,
                row.finished_at,
                row.attempts,
                may_have_arrived=row.begun_at is not None,
            )
        )
    return told


async def store(connection: AsyncConnection, plans: Sequence[Plan], *, now: datetime) -> int:
    """Add, move, cancel and explain what the plans ask for; return how many deliveries are new or changed.

    Idempotent: a delivery that stands already is left as it is, only a pending one is cancelled, and only one that
    was never tried is moved.
    """
    by_reason: dict[str, list[int]] = defaultdict(list)
    for delivery_id, reason in (entry for plan in plans for entry in plan.cancel):
        by_reason[reason.value].append(delivery_id)
    moved = [row for plan in plans for row in plan.move]
    gone = {delivery_id for ids in by_reason.values() for delivery_id in ids} | {row.delivery_id for row in moved}
    await digests.succeed(connection, gone)
    changed = await _cancel(connection, by_reason, now) + len(moved)
    if moved:
        await connection.execute(_MOVE, [_move(row) for row in moved])
        await digests.join_moved(connection, moved)
    added = [row for plan in plans for row in plan.add]
    if added:
        gathered = await digests.arrange(connection, added, now)
        changed += await _insert(connection, gathered.groups, now)
        await record_decisions(connection, gathered.decisions, now=now)
    await record_decisions(connection, [entry for plan in plans for entry in plan.decisions], now=now)
    return changed


async def _cancel(connection: AsyncConnection, by_reason: Mapping[str, Sequence[int]], now: datetime) -> int:
    cancelled = 0
    for word, ids in sorted(by_reason.items()):
        result = await connection.execute(
            update(DELIVERIES)
            .where(DELIVERIES.c.id.in_(ids), DELIVERIES.c.status == DeliveryStatus.PENDING)
            .values(status=DeliveryStatus.CANCELLED, reason=word, finished_at=now)
        )
        cancelled += result.rowcount
    return cancelled


async def _insert(connection: AsyncConnection, groups: Sequence[Group], now: datetime) -> int:
    """Insert the leads, then what each of them carries; return how many rows are new."""
    leads = [group.rows[0] for group in groups if group.lead_id is None]
    lead_ids = await _insert_rows(connection, leads, [None] * len(leads), now)
    rows, carriers = [], []
    for group in groups:
        first = group.rows[0]
        carrier = group.lead_id if group.lead_id is not None else lead_ids.get((first.notification_id, *first.key))
        for row in group.rows if group.lead_id is not None else group.rows[1:]:
            rows.append(row)
            carriers.append(carrier)
    carried = await _insert_rows(connection, rows, carriers, now)
    return len(lead_ids) + len(carried)


async def _insert_rows(
    connection: AsyncConnection, rows: Sequence[NewDelivery], carriers: Sequence[int | None], now: datetime
) -> Mapping[tuple[int, str, str, str], int]:
    if not rows:
        return {}
    columns = DELIVERIES.c
    statement = insert_ignoring(connection, DELIVERIES).returning(
        columns.id, columns.notification_id, columns.destination, columns.recipient, columns.purpose
    )
    values = [_delivery(row, carrier, now) for row, carrier in zip(rows, carriers, strict=True)]
    made = await connection.execute(statement, values)
    return {(row.notification_id, row.destination, row.recipient, row.purpose): row.id for row in made}


async def record_decisions(connection: AsyncConnection, decisions: Sequence[Decision], *, now: datetime) -> None:
    """Append entries to the story of their notifications."""
    if decisions:
        await connection.execute(insert(DECISIONS), [_decision(entry, now) for entry in decisions])


def _delivery(row: NewDelivery, carrier_id: int | None, now: datetime) -> dict[str, Any]:
    return {
        "notification_id": row.notification_id,
        "destination": row.destination,
        "channel": row.channel,
        "recipient": row.recipient,
        "purpose": row.purpose,
        "message_key": row.message_key,
        "route": row.route,
        "status": DeliveryStatus.PENDING.value,
        "reason": row.reason.value,
        "due_at": row.due_at,
        "next_attempt_at": row.due_at,
        "created_at": now,
        "carrier_id": carrier_id,
    }


def _move(row: Moved) -> dict[str, Any]:
    return {
        "row_id": row.delivery_id,
        "new_reason": row.reason.value,
        "new_route": row.route,
        "new_due_at": row.due_at,
    }


def _decision(entry: Decision, now: datetime) -> dict[str, Any]:
    return {
        "notification_id": entry.notification_id,
        "decided_at": now,
        "verdict": entry.verdict.value,
        "reason": entry.reason.value,
        "route": entry.route,
        "destination": entry.destination,
        "recipient": entry.recipient,
        "purpose": entry.purpose,
        "until": entry.until,
    }
