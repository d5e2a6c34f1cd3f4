"""Tells a request through the fallback of a destination that refuses it, is broken or is paused."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from reconciler import outbox
from reconciler.digests import held_with
from reconciler.plan import SETTLE, Decision, NewDelivery, Plan, message_key
from reconciler.reasons import DecisionReason, DeliveryStatus, Verdict
from reconciler.routes import Target
from reconciler.tables import DELIVERIES, DESTINATIONS
from worker.delivery.claims import WAITING
from worker.delivery.requests import Request
from worker.delivery.rows import Claimed, read_rows
from worker.delivery.tools import Tools


async def stand_in(connection: AsyncConnection, tools: Tools, destination: str, rows: Sequence[Claimed]) -> int:
    """Plan the same messages at the first sound fallback of `destination`; return how many are new.

    Where none is sound the first is taken: it holds them until it is mended. A message that stands there already is
    left as it is, so two destinations that stand in for each other end. The transaction is the caller's.
    """
    name = await _chosen(connection, tools, destination)
    if name is None:
        return 0
    now = tools.clock.now()
    # Several recipients here may have the same ones there.
    planned = {
        (row.request.enrolled.id, recipient, row.purpose): _planned(
            row, row.request, tools.target(name), recipient, now
        )
        for row in rows
        if row.request is not None and not row.is_settle
        for recipient in tools.target(name).recipients
    }
    add = tuple(planned.values())
    decisions = tuple(
        Decision(
            new.notification_id, Verdict.PLANNED, new.reason, new.route, new.destination, new.recipient, new.purpose
        )
        for new in add
    )
    return await outbox.store(connection, [Plan(add=add, decisions=decisions)], now=now)


async def hand_over(tools: Tools, destination: str) -> int:
    """Give what is due at a held destination to its fallback, unsent; return how many deliveries were given.

    A settle, a notice, and a message that may have arrived stay: they make no sense elsewhere.
    """
    columns = DELIVERIES.c
    now = tools.clock.now()
    due = (
        select(columns.id)
        .where(
            WAITING,
            columns.destination == destination,
            columns.next_attempt_at <= now,
            columns.status == DeliveryStatus.PENDING.value,
            columns.notification_id.is_not(None),
            columns.purpose != SETTLE,
            columns.begun_at.is_(None),
        )
        .order_by(columns.next_attempt_at)
        .limit(tools.limits.batch)
        .with_for_update(skip_locked=True)
    )
    async with tools.engine.begin() as connection:
        ids = list((await connection.execute(due)).scalars())
        if not ids:
            return 0
        carried, disturbed = await held_with(connection, ids, {DeliveryStatus.PENDING})
        ids = [*(lead for lead in ids if lead not in disturbed), *carried]
        rows = await read_rows(connection, ids)
        await connection.execute(
            update(DELIVERIES)
            .where(columns.id.in_(ids))
            .values(status=DeliveryStatus.CANCELLED.value, reason=DecisionReason.FALLBACK.value, finished_at=now)
        )
        given = [decided(row, Verdict.CANCELLED, DecisionReason.FALLBACK) for row in rows]
        await outbox.record_decisions(connection, [entry for entry in given if entry is not None], now=now)
        await stand_in(connection, tools, destination, rows)
    return len(ids)


def decided(row: Claimed, verdict: Verdict, reason: DecisionReason) -> Decision | None:
    """Return the entry for the story of the row's request; a notice has no story."""
    if row.request is None:
        return None
    return Decision(row.request.enrolled.id, verdict, reason, row.route, row.destination, row.recipient, row.purpose)


def _planned(row: Claimed, request: Request, target: Target, recipient: str, now: datetime) -> NewDelivery:
    enrolled = request.enrolled
    key = message_key(enrolled.namespace, enrolled.reference.attention_id, target.name, recipient, row.purpose)
    return NewDelivery(
        enrolled.id, target.name, target.channel, recipient, row.purpose, key, row.route, DecisionReason.FALLBACK, now
    )


async def _chosen(connection: AsyncConnection, tools: Tools, destination: str) -> str | None:
    names = [name for name in tools.destinations[destination].fallback if name in tools.destinations]
    if len(names) < 2:
        return names[0] if names else None
    rows = await connection.execute(
        select(DESTINATIONS.c.name).where(
            DESTINATIONS.c.name.in_(names),
            DESTINATIONS.c.broken_at.is_not(None) | DESTINATIONS.c.paused_at.is_not(None),
        )
    )
    held = {row.name for row in rows}
    return next((name for name in names if name not in held), names[0])
