"""Reads the state changes that are recorded, as a simulation takes them."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from config.database import READ_ONLY
from reconciler.routes import Subject
from reconciler.simulating import Event
from reconciler.states import AttentionState, Kind
from reconciler.tables import HISTORY, NOTIFICATIONS


async def recorded_events(engine: AsyncEngine) -> Sequence[Event]:
    """Return every change of state, oldest first; what people said meanwhile is not played again."""
    columns = NOTIFICATIONS.c
    statement = (
        select(
            HISTORY.c.recorded_at,
            HISTORY.c.to_state,
            columns.attention_id,
            columns.namespace,
            columns.kind,
            columns.agent_name,
            columns.requester,
            columns.labels,
        )
        .select_from(HISTORY.join(NOTIFICATIONS, HISTORY.c.notification_id == columns.id))
        .where(HISTORY.c.is_conflict.is_(False))
        .order_by(HISTORY.c.recorded_at, HISTORY.c.id)
    )
    async with engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        rows = (await connection.execute(statement)).all()
    return [
        Event(
            row.recorded_at,
            row.attention_id,
            Subject(row.namespace, Kind(row.kind), row.agent_name, row.requester, row.labels),
            AttentionState(row.to_state),
        )
        for row in rows
    ]
