"""Deliveries for destinations that the configuration no longer names, and the rows of those that it does."""

from sqlalchemy import and_, or_, select, update

from config.statements import insert_ignoring
from reconciler.reasons import DecisionReason, DeliveryStatus
from reconciler.tables import DELIVERIES, DESTINATIONS
from worker.delivery.tools import Tools

_LIMIT = 10_000
_WAITING = sorted(status.value for status in (DeliveryStatus.PENDING, DeliveryStatus.UNKNOWN))


async def know_destinations(tools: Tools) -> None:
    """Make a row of health for every configured destination; one that stands is left as it is."""
    if tools.destinations:
        async with tools.engine.begin() as connection:
            await connection.execute(
                insert_ignoring(connection, DESTINATIONS), [{"name": name} for name in sorted(tools.destinations)]
            )


async def end_orphans(tools: Tools) -> int:
    """Make dead letters of what has been due for `orphan_after` at a destination that nobody has; return how many.

    Not at once: while a release rolls out, an older process does not know the newer one's destinations.
    """
    now = tools.clock.now()
    columns = DELIVERIES.c
    long_ago = now - tools.limits.orphan_after
    is_waiting = and_(columns.status.in_(_WAITING), columns.next_attempt_at <= long_ago)
    is_abandoned = and_(columns.status == DeliveryStatus.LEASED.value, columns.leased_until <= long_ago)
    due = (
        select(columns.id)
        .where(columns.destination.not_in(sorted(tools.destinations)), or_(is_waiting, is_abandoned))
        .limit(_LIMIT)
    )
    async with tools.engine.begin() as connection:
        ended = await connection.execute(
            update(DELIVERIES)
            .where(columns.id.in_(due.scalar_subquery()))
            .values(
                status=DeliveryStatus.DEAD.value,
                reason=DecisionReason.NO_DESTINATION.value,
                lease_id=None,
                leased_until=None,
                finished_at=now,
                carrier_id=None,
            )
        )
    return ended.rowcount
