"""Makes plans on what the database holds and stores them, in the transaction of whatever they follow from."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from reconciler import outbox
from reconciler.plan import Case, Plan, Trigger, plan
from reconciler.routes import Routing
from reconciler.silences import active_silences


async def plan_all(
    connection: AsyncConnection, cases: Sequence[Case], trigger: Trigger, routing: Routing, *, now: datetime
) -> int:
    """Plan for each case and store what is new or other than before; return how many deliveries that are.

    Idempotent. The caller's transaction holds the cases' rows: it changed or locked them.
    """
    if not cases:
        return 0
    if routing.gathers:
        await outbox.take_turn(connection)
    told = await outbox.told_of(connection, [case.notification_id for case in cases])
    silences = await active_silences(connection, now)
    plans: list[Plan] = [
        plan(
            case,
            trigger,
            routing=routing,
            told=told.get(case.notification_id, ()),
            now=now,
            silences=silences,
        )
        for case in cases
    ]
    return await outbox.store(connection, plans, now=now)
