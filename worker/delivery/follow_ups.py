"""Plans what follows a message that was sent: the next reminder, in the transaction that records the sending.

So a process that dies anywhere leaves either an unrecorded try, which is taken over, or a planned reminder.
"""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from reconciler import outbox
from reconciler.cases import read_cases
from reconciler.plan import Case, Trigger
from reconciler.planning import plan_all
from reconciler.tables import DELIVERIES
from worker.delivery.claims import lapsed
from worker.delivery.rows import Claimed
from worker.delivery.tools import Tools


async def lock(connection: AsyncConnection, tools: Tools, rows: Sequence[Claimed]) -> Sequence[Case]:
    """Return the requests that the rows are about, locked with their deliveries; call it before anything else.

    None where no route reminds.
    """
    if not _remind(tools):
        return []
    cases = await read_cases(connection, {row.opens for row in rows if row.opens is not None})
    await _take_turn(connection, tools, cases)
    await outbox.lock(connection, [case.notification_id for case in cases], also=[row.id for row in rows])
    return cases


async def lock_lapsed(connection: AsyncConnection, tools: Tools, destination: str) -> Sequence[Case]:
    """Return the requests whose deliveries at `destination` may be taken over now, locked."""
    if not _remind(tools):
        return []
    found = await connection.execute(
        select(DELIVERIES.c.notification_id)
        .where(lapsed(destination, tools.clock.now()), DELIVERIES.c.notification_id.is_not(None))
        .limit(tools.limits.batch)
    )
    cases = await read_cases(connection, set(found.scalars()))
    await _take_turn(connection, tools, cases)
    return cases


async def plan(connection: AsyncConnection, tools: Tools, cases: Sequence[Case]) -> None:
    """Plan what is to be said next about the requests."""
    await plan_all(connection, cases, Trigger.TOLD, tools.routing(), now=tools.clock.now())


async def _take_turn(connection: AsyncConnection, tools: Tools, cases: Sequence[Case]) -> None:
    if cases and tools.routing().gathers:
        await outbox.take_turn(connection)


def _remind(tools: Tools) -> bool:
    return any(route.remind_every is not None for route in tools.routing().routes)
