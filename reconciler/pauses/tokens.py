"""The life of a pause token: minted, authenticated, bound, redeemed. The keys are the signer's business alone."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, cast

from .binding import ScopeBinder, hash_payload_body
from .claims import ASK_USER, PauseClaims
from .consumption import ConsumptionPort
from .drain import DrainProof, RetirementHorizon
from .errors import (
    InteractionConfigurationError,
    OperatedPlatformOnlyError,
    PauseTokenExpiredError,
    PauseTokenReplayedError,
    PauseTokenUnauthorizedError,
    TokenTTLError,
)
from .keys import new_jti
from .ledger import IssuanceLedgerPort
from .registrations import InteractionRegistration
from .ttl import DEFAULT_TTL, TTLPolicy
from .values import MintedPause, PauseBinding, ValidatedPause


class EnvelopeSignerPort(Protocol):
    """Whoever holds the keys. An envelope has a `payload` (bytes) and a `schema_id` (text)."""

    def mint(self, *, pin: Any, payload: bytes, schema_id: str) -> Any:
        """Return an envelope around the payload."""
        ...

    def verify(self, envelope: Any, *, pinless_policy: Any, schema_id: str) -> Any:
        """Return the invocation's pin, or raise.

        An exception whose `code` is `keyset_unavailable` says that nothing was decided about the envelope.
        """
        ...


class PauseTokenService:
    """Mints and reads pause tokens, over exactly one record of redemptions.

    In library mode that is a `consumption`, in operated mode a `ledger`. Raises InteractionConfigurationError
    for none or both, and for a signer that cannot mint and verify. `clock` returns epoch seconds.
    """

    SCHEMA_ID = "handbell.pause/v1"
    """What an envelope says it holds (the documentation leaves the spelling open)."""

    def __init__(
        self,
        signer: EnvelopeSignerPort,
        *,
        ttl: TTLPolicy = DEFAULT_TTL,
        consumption: ConsumptionPort | None = None,
        ledger: IssuanceLedgerPort | None = None,
        binder: ScopeBinder | None = None,
        clock: Callable[[], float] = time.time,
        pinless_policy: Any = None,
    ) -> None:
        lacking = [verb for verb in ("mint", "verify") if not callable(getattr(signer, verb, None))]
        if lacking:
            raise InteractionConfigurationError(f"the signer lacks {' and '.join(lacking)}")
        if (consumption is None) == (ledger is None):
            raise InteractionConfigurationError("exactly one of consumption and ledger decides who redeemed a token")
        self._signer = signer
        self._ttl = ttl
        self._ledger = ledger
        self._consumption: ConsumptionPort = cast("ConsumptionPort", consumption if ledger is None else ledger)
        self._binder = ScopeBinder() if binder is None else binder
        self._clock = clock
        self._pinless_policy = pinless_policy

    @property
    def operated(self) -> bool:
        """Whether an issuance ledger is kept."""
        return self._ledger is not None

    @property
    def consumption(self) -> ConsumptionPort:
        """The one record that decides redemptions."""
        return self._consumption

    def scope_hash(self, scope: object) -> str:
        """Return the hash of a presented scope; raises ScopeBindingError."""
        return self._binder.scope_hash(scope)

    async def mint(
        self,
        binding: PauseBinding,
        *,
        request_body: str,
        name: str = ASK_USER,
        tool_call_id: str = "",
        interrupt_id: str = "",
        ttl_seconds: float | None = None,
        legacy_pinned: bool = False,
    ) -> MintedPause:
        """Return a signed token whose issuance is recorded; it leaves only after that.

        `request_body` is the text that is recorded for this pause (`ScopeBinder.request_body`). The clock is
        read once. Raises TokenTTLError, ScopeBindingError and, for an id that no token can carry,
        InteractionConfigurationError, all before anything is signed; in operated mode also what the ledger raises.
        """
        now = self._clock()
        expires = int(now + self._ttl.resolve(ttl_seconds))
        if expires <= now:
            raise TokenTTLError("a lifetime that ends within the second it begins in cannot be signed")
        claims = PauseClaims(
            run_id=binding.run_id,
            session_id=binding.session_id,
            scope_hash=self.scope_hash(binding.scope),
            thread_id=binding.thread_id,
            checkpoint_id=binding.checkpoint_id or "",
            request_hash=hash_payload_body(request_body),
            exp=expires,
            jti=new_jti(),
            root_run_id=binding.root_run_id or binding.run_id,
            tool_call_id=tool_call_id,
            name=name,
            interrupt_id=interrupt_id,
            issued_at=now,
            legacy_pinned=legacy_pinned,
        )
        if unfit := claims.misfit():
            raise InteractionConfigurationError(f"no token can carry this {unfit}: it is too long or not text")
        envelope = self._signer.mint(pin=binding.pin, payload=claims.encode(), schema_id=self.SCHEMA_ID)
        if self._ledger is not None:
            await self._ledger.record_issuance(claims, pin=binding.pin)
        return MintedPause(envelope, claims)

    def authenticate(self, envelope: Any, at: float | None = None) -> ValidatedPause:
        """Return what a genuine, unexpired token says; asks the signer and the clock, touches no record.

        Raises PauseTokenUnauthorizedError (a token that is forged and expired is forged), then
        PauseTokenExpiredError. `at` is the reading to compare the expiry with, else the clock is read.
        """
        try:
            pin = self._signer.verify(envelope, pinless_policy=self._pinless_policy, schema_id=self.SCHEMA_ID)
        except Exception as refusal:
            # Whatever a signer raises is a refusal: nothing that it could not vouch for may be read.
            raise PauseTokenUnauthorizedError.from_signer_refusal(refusal) from refusal
        # A signer looks at the schema only where it has no pin of its own to compare.
        if getattr(envelope, "schema_id", "") != self.SCHEMA_ID:
            raise PauseTokenUnauthorizedError("the pause token's envelope is of another schema")
        claims = PauseClaims.decode(getattr(envelope, "payload", None))
        if claims.expired(self._clock() if at is None else at):
            raise PauseTokenExpiredError("the pause token's window is closed")
        return ValidatedPause(claims, pin)

    def bind(
        self,
        validated: ValidatedPause,
        *,
        scope: object,
        session_id: str | None = None,
        run_id: str | None = None,
        call_id: str | None = None,
        registration: InteractionRegistration | None = None,
    ) -> ValidatedPause:
        """Compare where the token is presented with where it belongs; see ScopeBinder.check for the order.

        Only the token's own registration can allow another scope; without one, scopes are closed.
        """
        claims = validated.claims
        crossable = registration is not None and registration.name == claims.name and registration.cross_scope_allowed
        crossed = self._binder.check(
            claims,
            scope=scope,
            session_id=session_id,
            run_id=run_id,
            call_id=call_id,
            cross_scope_allowed=crossable,
        )
        return replace(validated, cross_scope=True) if crossed else validated

    def validate(
        self,
        envelope: Any,
        *,
        scope: object,
        session_id: str | None = None,
        run_id: str | None = None,
        call_id: str | None = None,
        registration: InteractionRegistration | None = None,
        at: float | None = None,
    ) -> ValidatedPause:
        """Authenticate and bind; redeems nothing and may be repeated."""
        return self.bind(
            self.authenticate(envelope, at),
            scope=scope,
            session_id=session_id,
            run_id=run_id,
            call_id=call_id,
            registration=registration,
        )

    async def validate_and_consume(
        self,
        envelope: Any,
        *,
        scope: object,
        session_id: str | None = None,
        run_id: str | None = None,
        call_id: str | None = None,
        registration: InteractionRegistration | None = None,
        at: float | None = None,
    ) -> ValidatedPause:
        """Authenticate, bind, redeem; every refusal before the redemption leaves the token good."""
        validated = self.validate(
            envelope,
            scope=scope,
            session_id=session_id,
            run_id=run_id,
            call_id=call_id,
            registration=registration,
            at=at,
        )
        await self.consume(validated)
        return validated

    async def consume(self, validated: ValidatedPause) -> None:
        """Redeem the token, once; raises PauseTokenReplayedError where somebody else did.

        What is written is the scope that the token was minted in, not the one that presented it.
        """
        claims = validated.claims
        if not await self._consumption.claim(claims.jti, scope_hash=claims.scope_hash, name=claims.name):
            raise PauseTokenReplayedError("the pause token was redeemed already")

    async def drain_proof(self, now: float | None = None) -> DrainProof:
        """Say whether tokens of the retired format are over; raises OperatedPlatformOnlyError without a ledger."""
        return await self._require_ledger().drain_proof(now)

    async def record_retirement_horizon(self, at: float, reason: str) -> RetirementHorizon:
        """Record the horizon; raises OperatedPlatformOnlyError without a ledger."""
        return await self._require_ledger().record_retirement_horizon(at, reason)

    def _require_ledger(self) -> IssuanceLedgerPort:
        if self._ledger is None:
            raise OperatedPlatformOnlyError("only an operated platform keeps the ledger that could answer this")
        return self._ledger
