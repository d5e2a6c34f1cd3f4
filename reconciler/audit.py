"""What people did through Handbell's own doors: written with the deed, read by `handbell audit`."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.database import READ_ONLY
from reconciler.tables import AUDIT, ID_CHARS

_PAGE = 500


async def record_audit(
    connection: AsyncConnection, actor: str, action: str, subject: str, detail: str, *, now: datetime
) -> None:
    """Write down who did what to whom, in the transaction of the deed."""
    values = {
        "done_at": now,
        "actor": actor[:ID_CHARS],
        "action": action,
        "subject": subject[:ID_CHARS],
        "detail": detail,
    }
    await connection.execute(insert(AUDIT), [values])


async def audit(engine: AsyncEngine) -> AsyncIterator[dict[str, Any]]:
    """Yield what was done, oldest first, read in pages."""
    columns = AUDIT.c
    statement = select(
        columns.id, columns.done_at, columns.actor, columns.action, columns.subject, columns.detail
    ).order_by(columns.id)
    after_id = 0
    while True:
        async with engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            rows = (await connection.execute(statement.where(columns.id > after_id).limit(_PAGE))).all()
        for row in rows:
            yield {
                "at": row.done_at.isoformat(),
                "actor": row.actor,
                "action": row.action,
                "subject": row.subject,
                "detail": row.detail,
            }
        if len(rows) < _PAGE:
            return
        after_id = rows[-1].id
