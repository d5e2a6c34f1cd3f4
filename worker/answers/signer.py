"""Signs canonical bytes and vouches for them: JWS compact form, HMAC-SHA-256, a key id in the header.

PyJWT's JWS layer does the cryptography and no more: `jwt.decode` would read the claims its own way (its `exp` is
exclusive). What a header may say is fixed here: exactly `alg`, `kid` and `typ`, so that no token can bring its own
key (`jwk`, `jku`, `x5u`), name another algorithm, or make an extension critical.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

import jwt
from jwt.utils import base64url_encode

from config.clock import Clock
from worker.answers.errors import TokenRefusedError, TokenTooLongError
from worker.answers.keyset import Keyset, SigningKey

ALGORITHM = "HS256"

MAX_TOKEN_CHARS = 4_096
"""The longest token that is made or looked at: it must fit a link and a cookie."""

_HEADER_KEYS = {"alg", "kid", "typ"}
_READER = jwt.PyJWS(algorithms=[ALGORITHM])


class KeysetSource(Protocol):
    """Where the keys are; both verbs raise KeysetUnavailableError."""

    def current(self) -> Keyset:
        """Return the keyset as it is used now."""
        ...

    def refreshed(self) -> Keyset:
        """Return the keyset after another look, where one may be taken."""
        ...


@dataclass(frozen=True, slots=True)
class SignedEnvelope:
    """A token, and what it says it holds: nothing of it is verified until the signer has vouched for it."""

    token: str = field(repr=False)
    payload: bytes = field(repr=False)
    schema_id: str
    kid: str


@dataclass(frozen=True, slots=True)
class KeyPin:
    """Which key vouched."""

    kid: str


class JwsSigner:
    """The signer port of pause tokens (`EnvelopeSignerPort`) and of Handbell's own answer tokens."""

    def __init__(self, keys: KeysetSource, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock
        self._jws = jwt.PyJWS(algorithms=[ALGORITHM], options={"enforce_minimum_key_length": True})

    def mint(self, *, pin: Any, payload: bytes, schema_id: str) -> SignedEnvelope:
        """Return the payload signed with the active key; `pin` changes nothing.

        Raises KeysetUnavailableError, TokenTooLongError.
        """
        del pin
        keyset = self._keys.current()
        headers = {"kid": keyset.active_kid, "typ": schema_id}
        token = self._jws.encode(payload, keyset.active.secret, algorithm=ALGORITHM, headers=headers)
        if len(token) > MAX_TOKEN_CHARS:
            raise TokenTooLongError(f"the token is {len(token)} characters long: {MAX_TOKEN_CHARS} are read")
        return SignedEnvelope(token, payload, schema_id, keyset.active_kid)

    def verify(self, envelope: Any, *, pinless_policy: Any = None, schema_id: str) -> KeyPin:
        """Return which key vouches for the envelope exactly as it stands.

        Raises TokenRefusedError; KeysetUnavailableError where the keys cannot be read, so that nothing is known.
        """
        del pinless_policy
        if not isinstance(envelope, SignedEnvelope) or envelope.schema_id != schema_id:
            raise TokenRefusedError("not an envelope of this schema")
        _require_plain(envelope.token)
        secret = self._key(envelope.kid).secret
        try:
            vouched = self._jws.decode_complete(envelope.token, secret, algorithms=[ALGORITHM])
        except jwt.PyJWTError:
            # Not chained: a parser's error may quote the token.
            raise TokenRefusedError("the signature is not ours") from None
        if vouched["header"] != {"alg": ALGORITHM, "kid": envelope.kid, "typ": envelope.schema_id}:
            raise TokenRefusedError("the header is not ours")
        if vouched["payload"] != envelope.payload:
            raise TokenRefusedError("the envelope is not what its token says")
        # The signature's own spelling is the one part that no signature covers.
        if base64url_encode(vouched["signature"]).decode() != envelope.token.rpartition(".")[2]:
            raise TokenRefusedError("the signature is spelled otherwise")
        return KeyPin(envelope.kid)

    def _key(self, kid: str) -> SigningKey:
        key = self._keys.current().keys.get(kid) or self._keys.refreshed().keys.get(kid)
        if key is None or not key.verifies_at(self._clock.now()):
            raise TokenRefusedError("no key of ours has this id")
        return key


def open_token(token: str) -> SignedEnvelope:
    """Return what a token that travelled says it holds, unverified; raises TokenRefusedError for no token of ours."""
    _require_plain(token)
    try:
        opened = _READER.decode_complete(token, options={"verify_signature": False})
    except jwt.PyJWTError:
        raise TokenRefusedError("not a token") from None
    header = opened["header"]
    if header.keys() != _HEADER_KEYS or not all(isinstance(value, str) for value in header.values()):
        raise TokenRefusedError("the header is not ours")
    return SignedEnvelope(token, opened["payload"], header["typ"], header["kid"])


def _require_plain(token: object) -> None:
    if not isinstance(token, str) or not token.isascii() or len(token) > MAX_TOKEN_CHARS:
        raise TokenRefusedError("not a token")
