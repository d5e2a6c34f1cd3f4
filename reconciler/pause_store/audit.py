"""Every attempt to redeem a token from another scope than its own, kept."""

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.pause_store.failures import try_again
from reconciler.pause_store.tables import CROSS_SCOPE_AUDIT
from reconciler.pauses import CrossScopeRedemption


class CrossScopeAuditLog:
    """The audit of a capability, as rows; give its `record` as the capability's `audit`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def record(self, attempt: CrossScopeRedemption) -> None:
        """Keep the attempt, committed; raises PauseStoreUnavailableError, and the attempt then goes no further."""
        async with try_again(), self._engine.begin() as connection:
            await connection.execute(
                insert(CROSS_SCOPE_AUDIT).values(
                    jti=attempt.jti,
                    name=attempt.name,
                    interrupt_id=attempt.interrupt_id,
                    expected_scope_hash=attempt.expected_scope_hash,
                    presented_scope_hash=attempt.presented_scope_hash,
                    at=attempt.at,
                )
            )
