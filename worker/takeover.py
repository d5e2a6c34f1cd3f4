"""Ends the leases of a process that is gone, where nobody else can hold one.

A lease lapses by itself, so that one process never has to know whether another lives. Who holds the state directory
and keeps its database there knows: there is no other. So after a crash nothing waits for a lease to lapse.
"""

import structlog
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock
from reconciler.leases import Leases
from reconciler.reasons import DeliveryStatus
from reconciler.tables import DELIVERIES

log = structlog.get_logger()


async def end_leases(engine: AsyncEngine, clock: Clock) -> None:
    """Let every pass and every delivery be taken over at once; the turns of regular work stay as they are.

    A command that works beside us (`handbell sweep`) loses its lease too: then a pass is run twice, which is harmless.
    """
    passes = await Leases(engine, clock).end("sweep:")
    async with engine.begin() as connection:
        held = await connection.execute(
            update(DELIVERIES)
            .where(DELIVERIES.c.status == DeliveryStatus.LEASED.value)
            .values(leased_until=clock.now())
        )
    if passes or held.rowcount:
        log.info("leases.taken_over", passes=passes, deliveries=held.rowcount)
