"""The operated platform's record of every token: issued, redeemed, outstanding, retired.

A ledger is a consumption port too: what is above asks it `claim` and cannot tell the difference.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

from .claims import PauseClaims
from .consumption import ConditionalWriteConsumption, ConditionalWritePort, ConsumptionPort, redemption_is_shared
from .drain import (
    DEPLOYMENT,
    PROCESS,
    DrainProof,
    RetirementHorizon,
    drain_deadline,
    prove_drained,
    require_future_horizon,
)
from .errors import RetirementHorizonError, TokenLedgerError, TokenTTLError, UnissuedTokenError
from .issuance import InProcessIssuanceRecords, IssuanceRecords, IssuedToken, TokenConsumption


class IssuanceLedgerPort(ConsumptionPort, Protocol):
    """A consumption port that also knows what was issued."""

    async def record_issuance(self, claims: PauseClaims, *, pin: Any = None) -> IssuedToken:
        """Record a token before it leaves; raises, and the token must then not leave."""
        ...

    async def drain_proof(self, now: float | None = None) -> DrainProof:
        """Say whether tokens of the retired format are over."""
        ...

    async def record_retirement_horizon(self, at: float, reason: str) -> RetirementHorizon:
        """Record, once, from when on the retired format is not issued."""
        ...


def require_issuable(claims: PauseClaims, *, maximum_ttl_seconds: float, horizon: RetirementHorizon | None) -> None:
    """Raise unless this token may be recorded.

    TokenTTLError is about its lifetime, RetirementHorizonError about its format.
    """
    lifetime_seconds = claims.exp - claims.issued_at
    if not 0 < lifetime_seconds <= maximum_ttl_seconds:
        raise TokenTTLError(f"a lifetime of {lifetime_seconds} s is outside of 0 to {maximum_ttl_seconds} s")
    if horizon is not None and claims.legacy_pinned and claims.issued_at >= horizon.at:
        raise RetirementHorizonError("tokens of the retired format are not issued from the horizon on")


def issued_token(claims: PauseClaims, pin: Any) -> IssuedToken:
    """Return the record of an issuance; its expiry is exactly the signed one."""
    return IssuedToken(
        jti=claims.jti,
        scope_hash=claims.scope_hash,
        name=claims.name,
        issued_at=claims.issued_at,
        expires_at=float(claims.exp),
        legacy_pinned=claims.legacy_pinned,
        vector_hash=str(getattr(pin, "vector_hash", "")),
    )


class TokenIssuanceLedger:
    """A ledger on any records, with its redemptions decided in one place.

    Where a `store` is given, redemption is decided there, by the same single write as in library mode, and
    the records get a copy; a crash between the two leaves a redeemed token among the outstanding until it
    expires, which delays a drain proof and never falsifies one. Without a store the records decide.
    A ledger does not look at expiry when it is claimed from: a redemption that was validated in time may
    commit just after.
    """

    def __init__(
        self,
        *,
        maximum_ttl_seconds: float,
        clock: Callable[[], float] = time.time,
        store: ConditionalWritePort | None = None,
        records: IssuanceRecords | None = None,
    ) -> None:
        if not maximum_ttl_seconds > 0:
            raise TokenTTLError("a ledger's longest lifetime is above zero")
        self._maximum_ttl_seconds = maximum_ttl_seconds
        self._clock = clock
        self._store = None if store is None else ConditionalWriteConsumption(store, clock=clock)
        self._records = InProcessIssuanceRecords() if records is None else records

    @property
    def durable(self) -> bool:
        """Whether both records outlive the process: the weaker one decides."""
        return self._records.durable and (self._store is None or self._store.durable)

    @property
    def deployment_wide(self) -> bool:
        """Whether both records are shared by every process."""
        return self._records.shared and (self._store is None or redemption_is_shared(self._store))

    async def record_issuance(self, claims: PauseClaims, *, pin: Any = None) -> IssuedToken:
        """Record a token before it leaves.

        Raises TokenTTLError, RetirementHorizonError, or TokenLedgerError where the id was issued before.
        """
        horizon = await self._records.horizon()
        require_issuable(claims, maximum_ttl_seconds=self._maximum_ttl_seconds, horizon=horizon)
        token = issued_token(claims, pin)
        if not await self._records.add_issued(token):
            raise TokenLedgerError("a token of this id was issued before")
        return token

    async def claim(self, jti: str, *, scope_hash: str, name: str) -> bool:
        """Redeem the token; True for exactly one caller, False for every later one.

        Raises UnissuedTokenError where it was never issued, TokenLedgerError where it was issued in another
        scope or under another name; neither redeems it.
        """
        issued = await self._records.issued(jti)
        if issued is None:
            raise UnissuedTokenError("the ledger never issued this token")
        if (issued.scope_hash, issued.name) != (scope_hash, name):
            raise TokenLedgerError("the ledger issued this token in another scope or under another name")
        if self._store is not None and not await self._store.claim(jti, scope_hash=scope_hash, name=name):
            return False
        consumption = TokenConsumption(jti=jti, scope_hash=scope_hash, name=name, consumed_at=self._clock())
        recorded = await self._records.claim_consumption(consumption)
        return recorded if self._store is None else True

    async def outstanding(self, now: float | None = None) -> tuple[str, ...]:
        """Return the ids of every token issued, not redeemed and not expired, sorted."""
        return tuple(sorted(token.jti for token in await self._live(now)))

    async def drain_deadline(self) -> float | None:
        """Return the last instant at which a token of the retired format can be live; None without a horizon."""
        return drain_deadline(await self._records.horizon(), self._maximum_ttl_seconds)

    async def drain_proof(self, now: float | None = None) -> DrainProof:
        """Say whether tokens of the retired format are over, and how far that reaches."""
        at = self._clock() if now is None else now
        return prove_drained(
            now=at,
            horizon=await self._records.horizon(),
            maximum_ttl_seconds=self._maximum_ttl_seconds,
            live_legacy=tuple(sorted(token.jti for token in await self._live(at) if token.legacy_pinned)),
            scope=DEPLOYMENT if self.deployment_wide else PROCESS,
        )

    async def record_retirement_horizon(self, at: float, reason: str) -> RetirementHorizon:
        """Record the horizon; the first one stands for good.

        Raises RetirementHorizonError for one that is not in the future, and where one stands, even the same.
        """
        require_future_horizon(at, self._clock())
        standing, recorded = await self._records.claim_horizon(RetirementHorizon(at=at, reason=reason))
        if not recorded:
            raise RetirementHorizonError(f"a retirement horizon stands already: {standing.at} ({standing.reason})")
        return standing

    async def _live(self, now: float | None) -> list[IssuedToken]:
        at = self._clock() if now is None else now
        return [token for token in await self._records.unconsumed() if at <= token.expires_at]
