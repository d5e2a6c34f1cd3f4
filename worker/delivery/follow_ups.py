"""Plans what follows a message that was sent: the next reminder, in the transaction that records the sending.

So a process that dies anywhere leaves either an unrecorded try, which is taken over, or a planned reminder.
"""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from reconciler.cases import read_cases
from reconciler.plan import Case, Trigger
from reconciler.planning import plan_all
from reconciler.tables import DELIVERIES
from worker.delivery.claims import lapsed
from worker.delivery.rows import Claimed
from worker.delivery.tools import Tools


async def lock(connection: AsyncConnection, tools: Tools, rows: Sequence[Claimed]) -> Sequence[Case]:
    """Return the requests that the rows are about, locked; call it before their deliveries are locked.

    None where no route reminds.
    """
    if not _remind(tools):
        return []
    return await read_cases(
        connection, {row.request.enrolled.id for row in rows if row.request is not None and not row.is_settle}
    )


async def lock_lapsed(connection: AsyncConnection, tools: Tools, destination: str) -> Sequence[Case]:
    """Return the requests whose deliveries at `destination` may be taken over now, locked."""
    if not _remind(tools):
        return []
    found = await connection.execute(
        select(DELIVERIES.c.notification_id)
        .where(lapsed(destination, tools.clock.now()), DELIVERIES.c.notification_id.is_not(None))
        .limit(tools.limits.batch)
    )
    return await read_cases(connection, set(found.scalars()))


async def plan(connection: AsyncConnection, tools: Tools, cases: Sequence[Case]) -> None:
    """Plan what is to be said next about the requests."""
    await plan_all(connection, cases, Trigger.TOLD, tools.routing(), now=tools.clock.now())


def _remind(tools: Tools) -> bool:
    return any(route.remind_every is not None for route in tools.routing().routes)
