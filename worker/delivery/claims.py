"""Finds what is due for a destination and takes it under a lease, in one transaction.

PostgreSQL skips rows that another process holds; SQLite has one writer at a time. The status words are written out
in the statements because both databases use a partial index only where they can read its condition in the query.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, Update, and_, literal_column, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from config.database import READ_ONLY
from reconciler.digests import held_with
from reconciler.notices import NoticeKind
from reconciler.reasons import DeliveryStatus
from reconciler.tables import DELIVERIES, DESTINATIONS, NOTICES
from worker.delivery.rows import Claimed, read_rows
from worker.delivery.tools import Tools

WAITING: ColumnElement[bool] = literal_column(
    "deliveries.status IN ('pending', 'unknown') AND deliveries.carrier_id IS NULL"
)
_LEASED: ColumnElement[bool] = literal_column("deliveries.status = 'leased' AND deliveries.carrier_id IS NULL")
_TO_BE_TOLD = frozenset({DeliveryStatus.PENDING, DeliveryStatus.UNKNOWN, DeliveryStatus.LEASED})


@dataclass(frozen=True, slots=True)
class Health:
    """How a destination stands; `is_noted` while a notice about it is open."""

    broken_at: datetime | None = None
    paused_at: datetime | None = None
    next_send_at: datetime | None = None
    permanent_failures: int = 0
    is_noted: bool = False

    @property
    def is_held(self) -> bool:
        """Answer whether its openings go to its fallback meanwhile."""
        return self.broken_at is not None or self.paused_at is not None

    @property
    def is_flawless(self) -> bool:
        """Answer whether a success has nothing to mend."""
        return self.broken_at is None and self.permanent_failures == 0 and not self.is_noted


@dataclass(frozen=True, slots=True)
class Look:
    """What one cheap read says of a destination: when the earliest delivery is due, when the earliest lease ends."""

    due_at: datetime | None
    leased_until: datetime | None
    health: Health


async def look(tools: Tools, destination: str) -> Look:
    """Read, without a write lock, whether there is anything to do."""
    async with tools.engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        row = (await connection.execute(look_statement(destination))).one()
        health = await read_health(connection, destination, is_noted=row.noted is not None)
    return Look(row.due, row.leased, health)


def look_statement(destination: str) -> Select[tuple[datetime, datetime, int]]:
    """Return the one statement that tells whether there is anything to do: `due`, `leased`, `noted`."""
    due = _due(destination).with_only_columns(DELIVERIES.c.next_attempt_at).limit(1)
    leased = (
        select(DELIVERIES.c.leased_until)
        .where(_LEASED, DELIVERIES.c.destination == destination)
        .order_by(DELIVERIES.c.leased_until)
        .limit(1)
    )
    noted = (
        select(NOTICES.c.id)
        .where(
            NOTICES.c.kind.in_([NoticeKind.DESTINATION_BROKEN.value, NoticeKind.DESTINATION_PAUSED.value]),
            NOTICES.c.subject == destination,
            text("closed_at IS NULL"),
        )
        .limit(1)
    )
    return select(
        due.scalar_subquery().label("due"),
        leased.scalar_subquery().label("leased"),
        noted.scalar_subquery().label("noted"),
    )


async def read_health(connection: AsyncConnection, destination: str, *, is_noted: bool, locked: bool = False) -> Health:
    """Return how a destination stands; `locked` keeps others from changing it until the transaction ends."""
    statement = select(DESTINATIONS).where(DESTINATIONS.c.name == destination)
    row = (await connection.execute(statement.with_for_update() if locked else statement)).first()
    if row is None:
        return Health(is_noted=is_noted)
    return Health(row.broken_at, row.paused_at, row.next_send_at, row.permanent_failures, is_noted)


async def claim(tools: Tools, destination: str, *, lease_id: str, limit: int) -> Sequence[Claimed]:
    """Lease up to `limit` due deliveries, earliest first; `lease_id` fences every later write about them."""
    now = tools.clock.now()
    statement = claim_statement(destination, now=now, until=now + tools.limits.lease, lease_id=lease_id, limit=limit)
    async with tools.engine.begin() as connection:
        rows = (await connection.execute(statement)).all()
        ordered = [row.id for row in sorted(rows, key=lambda row: (row.next_attempt_at, row.id))]
        return await read_rows(
            connection, await _with_carried(connection, ordered, lease_id, now, now + tools.limits.lease)
        )


def claim_statement(destination: str, *, now: datetime, until: datetime, lease_id: str, limit: int) -> Update:
    """Return the one statement of a claim."""
    due = (
        _due(destination)
        .where(DELIVERIES.c.next_attempt_at <= now)
        .limit(limit)
        .with_for_update(skip_locked=True)
        .cte("due")
    )
    return _lease(select(due.c.id), lease_id, until)


async def take_over(connection: AsyncConnection, tools: Tools, destination: str, lease_id: str) -> Sequence[Claimed]:
    """Lease deliveries whose holder is gone (its lease lapsed), in the caller's transaction."""
    now = tools.clock.now()
    taken = (
        select(DELIVERIES.c.id)
        .where(lapsed(destination, now))
        .order_by(DELIVERIES.c.leased_until)
        .limit(tools.limits.batch)
        .with_for_update(skip_locked=True)
        .cte("lapsed")
    )
    rows = await connection.execute(_lease(select(taken.c.id), lease_id, now + tools.limits.lease))
    leads = sorted(row.id for row in rows)
    until = now + tools.limits.lease
    return await read_rows(connection, await _with_carried(connection, leads, lease_id, now, until))


def lapsed(destination: str, now: datetime) -> ColumnElement[bool]:
    """Return what is true of a destination's deliveries whose holder is gone."""
    return and_(_LEASED, DELIVERIES.c.destination == destination, DELIVERIES.c.leased_until <= now)


async def _with_carried(
    connection: AsyncConnection, leads: Sequence[int], lease_id: str, now: datetime, until: datetime
) -> Sequence[int]:
    """Lease what the leads carry; return all of it, the leads first.

    A lead of which somebody else holds a part is left to the next pass, by a lease that has lapsed: nobody waits
    while holding leads.
    """
    carried, disturbed = await held_with(connection, leads, _TO_BE_TOLD)
    if disturbed:
        await connection.execute(
            update(DELIVERIES).where(DELIVERIES.c.id.in_(sorted(disturbed))).values(leased_until=now)
        )
    if carried:
        await connection.execute(
            update(DELIVERIES)
            .where(DELIVERIES.c.id.in_(carried))
            .values(status=DeliveryStatus.LEASED.value, lease_id=lease_id, leased_until=until)
        )
    return [*(lead for lead in leads if lead not in disturbed), *carried]


async def still_ours(connection: AsyncConnection, ids: Sequence[int], lease_id: str) -> frozenset[int]:
    """Return those of `ids` that are leased under `lease_id`, locked (in id order) until the transaction ends."""
    rows = await connection.execute(
        select(DELIVERIES.c.id)
        .where(
            DELIVERIES.c.id.in_(sorted(ids)),
            DELIVERIES.c.lease_id == lease_id,
            DELIVERIES.c.status == DeliveryStatus.LEASED.value,
        )
        .order_by(DELIVERIES.c.id)
        .with_for_update()
    )
    return frozenset(row.id for row in rows)


async def renew(tools: Tools, ids: Sequence[int], lease_id: str, until: datetime) -> frozenset[int]:
    """Hold on to the deliveries until then; return those that are still ours."""
    async with tools.engine.begin() as connection:
        rows = await connection.execute(
            update(DELIVERIES)
            .where(
                DELIVERIES.c.id.in_(sorted(ids)),
                DELIVERIES.c.lease_id == lease_id,
                DELIVERIES.c.status == DeliveryStatus.LEASED.value,
            )
            .values(leased_until=until)
            .returning(DELIVERIES.c.id)
        )
        return frozenset(rows.scalars())


def _due(destination: str) -> Select[tuple[int]]:
    return (
        select(DELIVERIES.c.id)
        .where(WAITING, DELIVERIES.c.destination == destination)
        .order_by(DELIVERIES.c.next_attempt_at)
    )


def _lease(chosen: Select[tuple[int]], lease_id: str, until: datetime) -> Update:
    return (
        update(DELIVERIES)
        .where(DELIVERIES.c.id.in_(chosen))
        .values(status=DeliveryStatus.LEASED.value, lease_id=lease_id, leased_until=until)
        .returning(DELIVERIES.c.id, DELIVERIES.c.next_attempt_at)
    )
