"""The capability's ledger on SQLite and PostgreSQL: every decision is one conditional statement."""

import uuid
from dataclasses import dataclass
from typing import Any

from sqlalchemy import exists, literal, not_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.clock import Clock
from config.database import READ_ONLY
from config.statements import insert_ignoring
from reconciler.pause_store.claiming import Claim, claimed_by, explain, redeem, redeem_at_once
from reconciler.pause_store.failures import commit, try_again
from reconciler.pause_store.reader import live_legacy, outstanding
from reconciler.pause_store.tables import HORIZON, ISSUANCE
from reconciler.pauses import (
    DEPLOYMENT,
    DrainProof,
    IssuedToken,
    PauseClaims,
    PauseTokenReplayedError,
    RetirementHorizon,
    RetirementHorizonError,
    TokenLedgerError,
    TokenTTLError,
    call_id_of,
)
from reconciler.pauses.drain import drain_deadline, prove_drained, require_future_horizon
from reconciler.pauses.ledger import issued_token, require_issuable


@dataclass(frozen=True, slots=True)
class AnswerPlace:
    """The request that an answer token is for, and who was given it; a runtime's own tokens have none.

    `recipient_ref` names the recipient as the deployment does, `key_id` the key that signed.
    """

    namespace: str = ""
    attention_id: str = ""
    source: str = ""
    recipient_ref: str = ""
    channel: str = ""
    key_id: str = ""


_NOWHERE = AnswerPlace()


class SqlTokenLedger:
    """Issuance, redemption and retirement of tokens in one database, shared by every process of the deployment.

    Its tables must be there: it makes none. Everything that the database could not decide is
    PauseStoreUnavailableError. Unlike a ledger in process it looks at expiry when it is claimed from: the statement
    that redeems compares the signed expiry with the clock, read once for each claim.
    """

    durable = True
    deployment_wide = True

    def __init__(self, engine: AsyncEngine, clock: Clock, *, maximum_ttl_seconds: float) -> None:
        if not maximum_ttl_seconds > 0:
            raise TokenTTLError("a ledger's longest lifetime is above zero")
        self._engine = engine
        self._clock = clock
        self._maximum_ttl_seconds = maximum_ttl_seconds

    async def record_issuance(
        self, claims: PauseClaims, *, pin: Any = None, place: AnswerPlace = _NOWHERE
    ) -> IssuedToken:
        """Record a token before it leaves; where this raises it must not leave.

        Raises TokenTTLError, RetirementHorizonError, or TokenLedgerError where the id was issued before.
        """
        require_issuable(claims, maximum_ttl_seconds=self._maximum_ttl_seconds, horizon=None)
        token = issued_token(claims, pin)
        async with try_again(), self._engine.begin() as connection:
            is_recorded = await _insert_issuance(connection, token, claims, place)
            is_taken = not is_recorded and await _is_issued(connection, token.jti)
        if is_taken:
            raise TokenLedgerError("a token of this id was issued before")
        if not is_recorded:
            raise RetirementHorizonError("tokens of the retired format are not issued from the horizon on")
        return token

    async def claim(self, jti: str, *, scope_hash: str, name: str) -> bool:
        """Redeem the token; True for exactly one caller, False where a row says that another one has.

        A commit whose outcome was lost is settled by making the same claim again under the same mark. Raises
        UnissuedTokenError, TokenRevokedError, PauseTokenExpiredError, TokenLedgerError; PauseStoreUnavailableError
        where nothing is known.
        """
        now = self._clock.now().timestamp()
        claim = Claim(jti=jti, scope_hash=scope_hash, name=name, now=now, claim_id=uuid.uuid4().hex)
        async with try_again():
            decided = await self._claim_once(claim)
            if decided is None:
                decided = await self._claim_once(claim)
            if decided is True:
                return True
            async with self._engine.connect() as connection:
                connection = await connection.execution_options(**READ_ONLY)
                if await claimed_by(connection, jti) == claim.claim_id:
                    return True
                obstacle = await explain(connection, claim)
        if type(obstacle) is PauseTokenReplayedError:
            return False
        raise obstacle

    async def outstanding(self, now: float | None = None) -> tuple[str, ...]:
        """Return the ids of every token issued, unspent, unexpired and not revoked, sorted; read page by page."""
        at = self._now(now)
        found: list[str] = []
        page = await outstanding(self._engine, now=at)
        found += page.jtis
        while page.after is not None:
            page = await outstanding(self._engine, now=at, after=page.after)
            found += page.jtis
        return tuple(sorted(found))

    async def revoke(self, jti: str) -> bool:
        """Take a token back; return whether this call did. A redeemed one stays redeemed."""
        async with try_again(), self._engine.begin() as connection:
            found = await connection.execute(
                update(ISSUANCE)
                .where(ISSUANCE.c.jti == jti, ISSUANCE.c.revoked_at.is_(None))
                .values(revoked_at=self._now())
            )
        return found.rowcount > 0

    async def revoke_key(self, key_id: str) -> int:
        """Take back every live token that a key signed; return how many."""
        now = self._now()
        async with try_again(), self._engine.begin() as connection:
            found = await connection.execute(
                update(ISSUANCE)
                .where(ISSUANCE.c.key_id == key_id, ISSUANCE.c.expires_at >= now, ISSUANCE.c.revoked_at.is_(None))
                .values(revoked_at=now)
            )
        return found.rowcount

    async def drain_deadline(self) -> float | None:
        """Return the last instant at which a token of the retired format can be live; None without a horizon."""
        async with try_again(), self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            return drain_deadline(await _horizon(connection), self._maximum_ttl_seconds)

    async def drain_proof(self, now: float | None = None) -> DrainProof:
        """Say whether tokens of the retired format are over, for the whole deployment."""
        at = self._now(now)
        async with try_again(), self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            horizon = await _horizon(connection)
            live = await live_legacy(connection, now=at)
        return prove_drained(
            now=at,
            horizon=horizon,
            maximum_ttl_seconds=self._maximum_ttl_seconds,
            live_legacy=live,
            scope=DEPLOYMENT,
        )

    async def record_retirement_horizon(self, at: float, reason: str) -> RetirementHorizon:
        """Record the horizon; the first one stands for good.

        Raises RetirementHorizonError for one that is not in the future, and where one stands, even the same.
        """
        now = self._now()
        require_future_horizon(at, now)
        async with try_again(), self._engine.begin() as connection:
            recorded = await connection.execute(
                insert_ignoring(connection, HORIZON)
                .values(id=1, at=at, reason=reason, recorded_at=now)
                .returning(HORIZON.c.id)
            )
            is_ours = recorded.first() is not None
            standing = await _horizon(connection)
        if not is_ours and standing is not None:
            raise RetirementHorizonError(f"a retirement horizon stands already: {standing.at} ({standing.reason})")
        return RetirementHorizon(at=at, reason=reason)

    async def _claim_once(self, claim: Claim) -> bool | None:
        """Return whether the claim was committed; None where its outcome was lost, so that either may be true.

        PostgreSQL takes the one statement as a transaction of its own: two round trips fewer, and losers wait less.
        """
        if self._engine.dialect.name == "postgresql":
            return await redeem_at_once(self._engine, claim)
        async with self._engine.connect() as connection:
            if not await redeem(connection, claim):
                return False
            return True if await commit(connection) else None

    def _now(self, stated: float | None = None) -> float:
        return self._clock.now().timestamp() if stated is None else stated


async def _insert_issuance(
    connection: AsyncConnection, token: IssuedToken, claims: PauseClaims, place: AnswerPlace
) -> bool:
    """Insert the row unless the id is taken or the horizon forbids it, in one statement; return whether it is there."""
    values: dict[str, Any] = {
        "jti": token.jti,
        "namespace": place.namespace,
        "attention_id": place.attention_id,
        "source": place.source,
        "recipient_ref": place.recipient_ref,
        "channel": place.channel,
        "scope_hash": token.scope_hash,
        "session_id": claims.session_id,
        "run_id": claims.run_id,
        "call_id": call_id_of(claims),
        "name": token.name,
        "request_hash": claims.request_hash,
        "issued_at": token.issued_at,
        "expires_at": token.expires_at,
        "legacy_pinned": token.legacy_pinned,
        "vector_hash": token.vector_hash,
        "key_id": place.key_id,
    }
    is_retired = exists().where(HORIZON.c.at <= token.issued_at) if token.legacy_pinned else literal(value=False)
    row = select(*(literal(value, ISSUANCE.c[name].type) for name, value in values.items())).where(not_(is_retired))
    statement = insert_ignoring(connection, ISSUANCE).from_select(list(values), row).returning(ISSUANCE.c.jti)
    return (await connection.execute(statement)).first() is not None


async def _is_issued(connection: AsyncConnection, jti: str) -> bool:
    return await connection.scalar(select(ISSUANCE.c.jti).where(ISSUANCE.c.jti == jti)) is not None


async def _horizon(connection: AsyncConnection) -> RetirementHorizon | None:
    found = (await connection.execute(select(HORIZON.c.at, HORIZON.c.reason))).first()
    return None if found is None else RetirementHorizon(at=found.at, reason=found.reason)
