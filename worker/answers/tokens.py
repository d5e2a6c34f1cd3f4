"""Mints the token that goes into one person's link, and reads it back; keeps its issuance in the ledger."""

from dataclasses import dataclass
from typing import Any

from config.clock import Clock
from reconciler.pause_store.ledger import AnswerPlace, SqlTokenLedger
from reconciler.pauses import (
    ASK_USER,
    PauseClaims,
    PauseTokenExpiredError,
    PauseTokenUnauthorizedError,
    TTLPolicy,
    hash_scope_exactly,
)
from reconciler.pauses.keys import new_jti
from worker.answers.claims import AnswerClaims
from worker.answers.signer import JwsSigner, open_token

SCHEMA_ID = "attn-answer+jws"
"""The token's `typ`: a pause token of a runtime is another schema and is refused here, and the other way round."""


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """What a token is minted for: a request, the scope it belongs to, its place in the runtime, and its recipient.

    `scope` has `tenant_id`, and where there are any `sub_tenant_id` and `namespace`. `request_hash` is of the request
    as the recipient is shown it.
    """

    scope: Any
    namespace: str
    attention_id: str
    source: str
    recipient_ref: str
    channel: str
    session_id: str
    run_id: str
    call_id: str
    request_hash: str
    name: str = ASK_USER


class AnswerTokens:
    """Mints and authenticates answer tokens."""

    def __init__(self, signer: JwsSigner, ledger: SqlTokenLedger, clock: Clock, *, ttl: TTLPolicy) -> None:
        self._signer = signer
        self._ledger = ledger
        self._clock = clock
        self._ttl = ttl

    async def mint(self, request: AnswerRequest, *, ttl_seconds: float | None = None) -> str:
        """Return a token whose issuance is recorded.

        Raises TokenTTLError, ScopeBindingError, KeysetUnavailableError before anything is recorded, and what the
        ledger raises; then no token leaves.
        """
        now = self._clock.now().timestamp()
        claims = AnswerClaims(
            jti=new_jti(),
            exp=int(now + self._ttl.resolve(ttl_seconds)),
            scope_hash=hash_scope_exactly(request.scope),
            request_hash=request.request_hash,
        )
        envelope = self._signer.mint(pin=None, payload=claims.encode(), schema_id=SCHEMA_ID)
        place = AnswerPlace(
            namespace=request.namespace,
            attention_id=request.attention_id,
            source=request.source,
            recipient_ref=request.recipient_ref,
            channel=request.channel,
            key_id=envelope.kid,
        )
        await self._ledger.record_issuance(_recorded(request, claims, now), place=place)
        return envelope.token

    def authenticate(self, token: str, *, now: float) -> AnswerClaims:
        """Return what a genuine, unexpired token says; touches no record.

        Raises PauseTokenUnauthorizedError (its `code` tells unreachable keys apart), then PauseTokenExpiredError.
        """
        try:
            envelope = open_token(token)
            self._signer.verify(envelope, schema_id=SCHEMA_ID)
        except Exception as refusal:
            # Whatever was raised is a refusal: nothing that the signer could not vouch for may be read.
            raise PauseTokenUnauthorizedError.from_signer_refusal(refusal) from refusal
        claims = AnswerClaims.decode(envelope.payload)
        if claims.expired(now):
            raise PauseTokenExpiredError("the answer token's window is closed")
        return claims


def _recorded(request: AnswerRequest, claims: AnswerClaims, now: float) -> PauseClaims:
    """Return the claims as the ledger keeps them: the signed ones, and the place that the token does not show."""
    return PauseClaims(
        run_id=request.run_id,
        session_id=request.session_id,
        scope_hash=claims.scope_hash,
        thread_id="",
        checkpoint_id="",
        request_hash=claims.request_hash,
        exp=claims.exp,
        jti=claims.jti,
        tool_call_id=request.call_id,
        name=request.name,
        issued_at=now,
    )
