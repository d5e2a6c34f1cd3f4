"""The statement that redeems a token, and the reading that explains why it did not.

The reading comes only after a loss and never decides: between two readers both could be told that a token is free.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Double, String, literal, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.statements import insert_ignoring
from reconciler.pause_store.errors import PauseStoreUnavailableError, TokenRevokedError
from reconciler.pause_store.tables import CONSUMPTION, ISSUANCE
from reconciler.pauses import (
    HumanInteractionError,
    PauseTokenExpiredError,
    PauseTokenReplayedError,
    TokenLedgerError,
    UnissuedTokenError,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One try to redeem a token, at `now` (epoch seconds).

    `claim_id` is the same at every repetition of the try. A token that was issued for a request is redeemed only
    with that request's answer, one without a request only without.
    """

    jti: str
    scope_hash: str
    name: str
    now: float
    claim_id: str
    namespace: str = ""
    attention_id: str = ""

    @property
    def subject(self) -> tuple[str, str, str, str]:
        """What the issuance must say too."""
        return (self.scope_hash, self.name, self.namespace, self.attention_id)


async def redeem(connection: AsyncConnection, claim: Claim) -> bool:
    """Redeem the token where it is issued, unspent, unexpired and not revoked; return whether this call did.

    One conditional write; a concurrent claimer waits for the first one's commit or rollback.
    """
    redeemable = select(
        ISSUANCE.c.jti,
        ISSUANCE.c.scope_hash,
        ISSUANCE.c.name,
        literal(claim.now, Double()),
        literal(claim.claim_id, String()),
    ).where(
        ISSUANCE.c.jti == claim.jti,
        ISSUANCE.c.scope_hash == claim.scope_hash,
        ISSUANCE.c.name == claim.name,
        ISSUANCE.c.namespace == claim.namespace,
        ISSUANCE.c.attention_id == claim.attention_id,
        ISSUANCE.c.expires_at >= claim.now,
        ISSUANCE.c.revoked_at.is_(None),
    )
    columns = [column.name for column in CONSUMPTION.c]
    statement = insert_ignoring(connection, CONSUMPTION).from_select(columns, redeemable).returning(CONSUMPTION.c.jti)
    return (await connection.execute(statement)).first() is not None


async def redeem_at_once(engine: AsyncEngine, claim: Claim) -> bool | None:
    """Redeem the token in a transaction of the server's own; None where the answer was lost, so that either is true."""
    try:
        async with engine.connect() as connection:
            connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
            return await redeem(connection, claim)
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
        return None


async def explain(connection: AsyncConnection, claim: Claim) -> HumanInteractionError:
    """Return why the token was not redeemed by this claim.

    PauseTokenReplayedError only where a row says that somebody else redeemed it. Where nothing stands in the way any
    more, something changed in between: PauseStoreUnavailableError, and the claim may be made again.
    """
    found = (
        await connection.execute(
            select(
                ISSUANCE.c.scope_hash,
                ISSUANCE.c.name,
                ISSUANCE.c.namespace,
                ISSUANCE.c.attention_id,
                ISSUANCE.c.expires_at,
                ISSUANCE.c.revoked_at,
                CONSUMPTION.c.claim_id,
            )
            .select_from(ISSUANCE.outerjoin(CONSUMPTION, CONSUMPTION.c.jti == ISSUANCE.c.jti))
            .where(ISSUANCE.c.jti == claim.jti)
        )
    ).first()
    if found is None:
        return UnissuedTokenError("the ledger never issued this token")
    return _obstacle(found, claim)


def _obstacle(found: Any, claim: Claim) -> HumanInteractionError:
    if (found.scope_hash, found.name, found.namespace, found.attention_id) != claim.subject:
        return TokenLedgerError(
            "the ledger issued this token in another scope, under another name or for another request"
        )
    if found.claim_id is not None:
        return PauseTokenReplayedError("the pause token was redeemed already")
    if found.revoked_at is not None:
        return TokenRevokedError("the pause token was revoked")
    if found.expires_at < claim.now:
        return PauseTokenExpiredError("the pause token's window is closed")
    return PauseStoreUnavailableError("the pause store changed while it was asked")


async def claimed_by(connection: AsyncConnection, jti: str) -> str | None:
    """Return the mark of whoever redeemed the token, None where nobody has."""
    found: str | None = await connection.scalar(select(CONSUMPTION.c.claim_id).where(CONSUMPTION.c.jti == jti))
    return found
