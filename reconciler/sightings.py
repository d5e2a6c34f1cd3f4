"""Records what a source shows that is no notification: withheld requests (counted) and delegations (navigation)."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from config.statements import insert_ignoring
from reconciler.references import Reference
from reconciler.sources.protocol import Delegation
from reconciler.tables import DELEGATIONS, WITHHELD


async def record_sightings(
    engine: AsyncEngine,
    namespace: str,
    *,
    withheld: Sequence[Reference],
    delegations: Sequence[Delegation],
    now: datetime,
) -> None:
    """Write down each withheld request and each delegation once; nothing is written where both are empty."""
    if not withheld and not delegations:
        return
    async with engine.begin() as connection:
        if withheld:
            await connection.execute(
                insert_ignoring(connection, WITHHELD),
                [
                    {
                        "namespace": namespace,
                        "attention_id": reference.attention_id,
                        "session_id": reference.session_id,
                        "seen_at": now,
                    }
                    for reference in withheld
                ],
            )
        if delegations:
            await connection.execute(
                insert_ignoring(connection, DELEGATIONS),
                [
                    {
                        "namespace": namespace,
                        "session_id": item.session_id,
                        "child_session_id": item.child_session_id,
                        "seen_at": now,
                    }
                    for item in delegations
                ],
            )
