"""Writes what was ruled about a batch, and marks as begun what is about to be sent, in one transaction.

A try is begun before the provider is asked: should this process end in between, whoever takes over knows that the
message may have arrived.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import bindparam, func, literal, update
from sqlalchemy.ext.asyncio import AsyncConnection

from config.metadata import Instant
from reconciler import outbox
from reconciler.plan import Decision
from reconciler.reasons import DecisionReason, DeliveryStatus, Verdict
from reconciler.tables import DELIVERIES, DESTINATIONS
from worker.delivery import claims, groups, stand_ins
from worker.delivery.gate import Ask, Drop, Go, Ruling, Wait
from worker.delivery.groups import Unit
from worker.delivery.rows import Claimed, settled_among
from worker.delivery.tools import Tools

_POSTPONE = (
    update(DELIVERIES)
    .where(DELIVERIES.c.id == bindparam("row_id"))
    .values(
        status=DeliveryStatus.PENDING.value,
        reason=bindparam("new_reason"),
        next_attempt_at=bindparam("new_next_attempt_at"),
        lease_id=None,
        leased_until=None,
    )
)


@dataclass(frozen=True, slots=True)
class Begun:
    """What may be done now: messages to send, each not before its time, and tries to ask about."""

    go: Sequence[tuple[Unit, datetime]]
    ask: Sequence[Sequence[Ask]]
    leased_until: datetime


async def begin(
    tools: Tools, destination: str, lease_id: str, rulings: Sequence[Ruling], *, is_probe: bool = False
) -> Begun:
    """Store the rulings and begin the tries, of those deliveries that are still ours; renews their leases.

    `is_probe` says that the destination is broken: the next message has to wait for the next probe.
    """
    async with tools.engine.begin() as connection:
        now = tools.clock.now()
        ours = await claims.still_ours(connection, [ruling.row.id for ruling in rulings], lease_id)
        rulings = await _settled_meanwhile(connection, [ruling for ruling in rulings if ruling.row.id in ours])
        rulings = await groups.regroup(connection, groups.together(rulings))
        go = [ruling for ruling in rulings if isinstance(ruling, Go)]
        await _postpone(connection, [ruling for ruling in rulings if isinstance(ruling, Wait)])
        await _drop(connection, [ruling for ruling in rulings if isinstance(ruling, Drop)], now)
        await outbox.record_decisions(connection, _story(rulings), now=now)
        until = now + tools.limits.lease
        await _mark(connection, tools, [ruling.row for ruling in go], now, until)
        begun = [replace(ruling, row=replace(ruling.row, attempts=ruling.row.attempts + 1)) for ruling in go]
        begun = [replace(ruling, row=_bounded(ruling.row, tools, now)) for ruling in begun]
        units = [Unit(members) for members in groups.in_groups(begun)]
        times = await _slots(connection, tools, destination, len(units), now, is_probe=is_probe)
    asks = groups.in_groups([ruling for ruling in rulings if isinstance(ruling, Ask)])
    return Begun(list(zip(units, times, strict=True)), asks, until)


def _bounded(row: Claimed, tools: Tools, now: datetime) -> Claimed:
    return row if row.give_up_at is not None else replace(row, give_up_at=now + tools.limits.backoff.max_age)


async def _settled_meanwhile(connection: AsyncConnection, rulings: Sequence[Ruling]) -> Sequence[Ruling]:
    """Another door may have settled a request while its source was being asked."""
    over = await settled_among(connection, [ruling.row for ruling in rulings if isinstance(ruling, Go)])
    return [
        Drop(ruling.row, DecisionReason.SETTLED_BEFORE_SENDING)
        if isinstance(ruling, Go) and ruling.row.opens in over
        else ruling
        for ruling in rulings
    ]


async def _postpone(connection: AsyncConnection, waits: Sequence[Wait]) -> None:
    if waits:
        await connection.execute(
            _POSTPONE,
            [
                {"row_id": wait.row.id, "new_reason": wait.reason.value, "new_next_attempt_at": wait.until}
                for wait in waits
            ],
        )


async def _drop(connection: AsyncConnection, drops: Sequence[Drop], now: datetime) -> None:
    by_reason: dict[DecisionReason, list[int]] = defaultdict(list)
    for drop in drops:
        by_reason[drop.reason].append(drop.row.id)
    for reason, ids in sorted(by_reason.items()):
        await connection.execute(
            update(DELIVERIES)
            .where(DELIVERIES.c.id.in_(ids))
            .values(
                status=DeliveryStatus.CANCELLED.value,
                reason=reason.value,
                finished_at=now,
                lease_id=None,
                leased_until=None,
            )
        )


async def _mark(
    connection: AsyncConnection, tools: Tools, rows: Sequence[Claimed], now: datetime, until: datetime
) -> None:
    if rows:
        give_up_at = literal(now + tools.limits.backoff.max_age, Instant())
        await connection.execute(
            update(DELIVERIES)
            .where(DELIVERIES.c.id.in_(sorted(row.id for row in rows)))
            .values(
                attempts=DELIVERIES.c.attempts + 1,
                begun_at=func.coalesce(DELIVERIES.c.begun_at, literal(now, Instant())),
                give_up_at=func.coalesce(DELIVERIES.c.give_up_at, give_up_at),
                leased_until=until,
            )
        )


async def _slots(
    connection: AsyncConnection, tools: Tools, destination: str, count: int, now: datetime, *, is_probe: bool
) -> Sequence[datetime]:
    """Reserve the throttle's next moments, one for each message, across all processes; a probe holds the next one."""
    throttle = tools.destinations[destination].throttle
    if count == 0 or (throttle is None and not is_probe):
        return [now] * count
    health = await claims.read_health(connection, destination, is_noted=False, locked=True)
    start, step = max(now, health.next_send_at or now), throttle or timedelta(0)
    after = start + step * count
    if is_probe:
        after = max(after, now + tools.limits.probe_every)
    await connection.execute(update(DESTINATIONS).where(DESTINATIONS.c.name == destination).values(next_send_at=after))
    return [start + step * index for index in range(count)]


def _story(rulings: Sequence[Ruling]) -> list[Decision]:
    """A delivery that goes on waiting for the same reason is told once."""
    told: list[Decision | None] = []
    for ruling in rulings:
        if isinstance(ruling, Drop):
            told.append(stand_ins.decided(ruling.row, Verdict.CANCELLED, ruling.reason))
        elif isinstance(ruling, Wait) and ruling.row.reason != ruling.reason:
            entry = stand_ins.decided(ruling.row, Verdict.POSTPONED, ruling.reason)
            told.append(entry and replace(entry, until=ruling.until))
    return [entry for entry in told if entry is not None]
