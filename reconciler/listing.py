"""Reads notifications for people: one plain mapping each, with the field names of the public JSON."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from config.database import READ_ONLY
from reconciler.errors import AmbiguousAttention, UnknownAttention
from reconciler.states import SUMMARIES, Kind
from reconciler.tables import NOTIFICATIONS

_PAGE = 500


async def notifications(
    engine: AsyncEngine, *, state: str | None = None, namespace: str | None = None
) -> AsyncIterator[dict[str, Any]]:
    """Yield every notification that fits, oldest first, read in pages so that memory stays flat."""
    columns = NOTIFICATIONS.c
    statement = select(
        columns.id,
        columns.namespace,
        columns.attention_id,
        columns.kind,
        columns.session_id,
        columns.agent_name,
        columns.requester,
        columns.state,
        columns.reason,
        columns.dismissed_at,
        columns.first_seen_at,
        columns.state_changed_at,
    ).order_by(columns.id)
    if state is not None:
        statement = statement.where(columns.state == state)
    if namespace is not None:
        statement = statement.where(columns.namespace == namespace)
    after_id = 0
    while True:
        async with engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            rows = (await connection.execute(statement.where(columns.id > after_id).limit(_PAGE))).all()
        for row in rows:
            yield _listed(row)
        if len(rows) < _PAGE:
            return
        after_id = rows[-1].id


async def find_notification(engine: AsyncEngine, attention_id: str, namespace: str | None) -> int:
    """Return the id of the one notification meant; raises UnknownAttention or AmbiguousAttention."""
    columns = NOTIFICATIONS.c
    statement = select(columns.id, columns.namespace).where(columns.attention_id == attention_id)
    if namespace is not None:
        statement = statement.where(columns.namespace == namespace)
    async with engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        rows = (await connection.execute(statement.order_by(columns.namespace))).all()
    if not rows:
        where = f" in namespace {namespace!r}" if namespace else ""
        raise UnknownAttention(f"no notification has the attention id {attention_id!r}{where}")
    if len(rows) > 1:
        names = ", ".join(row.namespace for row in rows)
        raise AmbiguousAttention(f"attention id {attention_id!r} exists in several namespaces: name one of {names}")
    return int(rows[0].id)


def _listed(row: Any) -> dict[str, Any]:
    return {
        "namespace": row.namespace,
        "attention_id": row.attention_id,
        "kind": row.kind,
        "summary": SUMMARIES[Kind(row.kind)],
        "session_id": row.session_id,
        "agent_name": row.agent_name,
        "requester": row.requester,
        "state": row.state,
        "reason": row.reason,
        "dismissed": row.dismissed_at is not None,
        "first_seen_at": row.first_seen_at.isoformat(),
        "state_changed_at": row.state_changed_at.isoformat(),
    }
