"""Asks again, just before sending, whether something holds a message: routes and people may have said so since."""

from collections.abc import Mapping, Sequence

from config.database import READ_ONLY
from reconciler.plan import Hold, hold
from reconciler.silences import active_silences
from worker.delivery.rows import Claimed
from worker.delivery.tools import Tools


async def holds(tools: Tools, rows: Sequence[Claimed]) -> Mapping[int, Hold]:
    """Return what holds each of the deliveries that is held, by its id; the end of a request never is."""
    told = [(row, row.request.case) for row in rows if row.request is not None and not row.is_settle]
    if not told:
        return {}
    now, routing = tools.clock.now(), tools.routing()
    async with tools.engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        silences = await active_silences(connection, now)
    found = {row.id: hold(case, routing.owner(case.subject, row.destination), silences, now) for row, case in told}
    return {row_id: held for row_id, held in found.items() if held is not None}
