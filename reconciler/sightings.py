"""Records what a source shows that is no notification: withheld requests (counted), and parents that wait on a child
which nobody is told of (navigation for an operator, in `handbell status`).
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.database import READ_ONLY
from config.statements import insert_ignoring
from reconciler.references import Reference, storable_text
from reconciler.sources.protocol import Delegation
from reconciler.tables import DELEGATIONS, ID_CHARS, WITHHELD

# Of an index entry PostgreSQL takes 2,704 bytes; both ids of a delegation stand in one.
_MAX_ID_BYTES = 1200


async def record_sightings(
    engine: AsyncEngine,
    namespace: str,
    *,
    withheld: Sequence[Reference],
    delegations: Sequence[Delegation],
    now: datetime,
) -> None:
    """Write down each withheld request once, and when each delegation to a child that is not enrolled was seen last.

    A delegation whose child is enrolled is not written down: the child has a notification of its own. Nothing is
    written where there is neither. A delegation between sessions whose ids are too long to be kept is left out.
    """
    shown = [item for item in delegations if not item.is_child_enrolled and _is_storable(item)]
    if not withheld and not shown:
        return
    async with engine.begin() as connection:
        if withheld:
            await connection.execute(
                insert_ignoring(connection, WITHHELD),
                [
                    {
                        "namespace": namespace,
                        "attention_id": reference.attention_id,
                        "session_id": storable_text(reference.session_id)[:ID_CHARS],
                        "seen_at": now,
                    }
                    for reference in withheld
                ],
            )
        for item in shown:
            await _see(connection, namespace, item, now)


async def forget_unseen(engine: AsyncEngine, namespace: str, *, since: datetime) -> None:
    """Forget the delegations that a complete pass begun at `since` did not show.

    One whose session moved between two pages is missed, and shown again by the next head pass: it is the newest change.
    """
    async with engine.begin() as connection:
        await connection.execute(
            delete(DELEGATIONS).where(DELEGATIONS.c.namespace == namespace, DELEGATIONS.c.seen_at < since)
        )


async def forget_other_children(
    engine: AsyncEngine, namespace: str, session_id: str, delegations: Sequence[Delegation]
) -> None:
    """Forget the session's delegations but those that a whole view of it shows now; writes only where there are any."""
    children = [item.child_session_id for item in delegations if not item.is_child_enrolled and _is_storable(item)]
    columns = DELEGATIONS.c
    is_over = (
        (columns.namespace == namespace)
        & (columns.session_id == session_id)
        & columns.child_session_id.not_in(children)
    )
    async with engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        found = (await connection.execute(select(columns.session_id).where(is_over).limit(1))).first()
    if found is not None:
        async with engine.begin() as connection:
            await connection.execute(delete(DELEGATIONS).where(is_over))


def _is_storable(item: Delegation) -> bool:
    ids = (item.session_id, item.child_session_id)
    return all(storable_text(one) == one and len(one) <= ID_CHARS and len(one.encode()) <= _MAX_ID_BYTES for one in ids)


async def _see(connection: AsyncConnection, namespace: str, item: Delegation, now: datetime) -> None:
    key = {"namespace": namespace, "session_id": item.session_id, "child_session_id": item.child_session_id}
    inserted = await connection.execute(
        insert_ignoring(connection, DELEGATIONS).returning(DELEGATIONS.c.session_id), [{**key, "seen_at": now}]
    )
    if inserted.first() is None:
        is_it = [DELEGATIONS.c[name] == value for name, value in key.items()]
        await connection.execute(update(DELEGATIONS).where(*is_it).values(seen_at=now))
