"""Signs canonical bytes and vouches for them: JWS compact form, HMAC-SHA-256, a key id in the header.

PyJWT signs, and compares signatures; `jwt.decode` would read the claims its own way (its `exp` is exclusive). A header
is not interpreted but compared: there is exactly one text of it for a key and a schema. So no token can bring its own
key (`jwk`, `jku`, `x5u`), name another algorithm, make an extension critical, or say the same in another spelling.
"""

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any, Protocol

import jwt

from config.clock import Clock
from worker.answers.errors import TokenRefusedError, TokenTooLongError
from worker.answers.keyset import Keyset, SigningKey

ALGORITHM = "HS256"

MAX_TOKEN_CHARS = 4_096
"""The longest token that is made or looked at: it must fit a link and a cookie."""

_HEADER_KEYS = {"alg", "kid", "typ"}
_HMAC = jwt.PyJWS(algorithms=[ALGORITHM]).get_algorithm_by_name(ALGORITHM)


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
        token = self._jws.encode(payload, keyset.active.secret, algorithm=ALGORITHM, headers=headers, sort_headers=True)
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
        signed, _, signature = envelope.token.rpartition(".")
        header, _, payload = signed.partition(".")
        if header != _header_text(envelope.kid, schema_id):
            raise TokenRefusedError("the header is not ours")
        key = _HMAC.prepare_key(self._key(envelope.kid).secret)
        if not _HMAC.verify(signed.encode("ascii"), key, _decoded(signature)):
            raise TokenRefusedError("the signature is not ours")
        if _decoded(payload) != envelope.payload:
            raise TokenRefusedError("the envelope is not what its token says")
        return KeyPin(envelope.kid)

    def _key(self, kid: str) -> SigningKey:
        key = self._keys.current().keys.get(kid) or self._keys.refreshed().keys.get(kid)
        if key is None or not key.verifies_at(self._clock.now()):
            raise TokenRefusedError("no key of ours has this id")
        return key


def open_token(token: str) -> SignedEnvelope:
    """Return what a token that travelled says it holds, unverified; raises TokenRefusedError for no token of ours."""
    _require_plain(token)
    parts = token.split(".")
    if len(parts) != 3:
        raise TokenRefusedError("not a token")
    try:
        header = json.loads(_decoded(parts[0]))
    except (ValueError, RecursionError):
        raise TokenRefusedError("not a token") from None
    if not isinstance(header, dict) or header.keys() != _HEADER_KEYS:
        raise TokenRefusedError("the header is not ours")
    if not all(isinstance(value, str) for value in header.values()):
        raise TokenRefusedError("the header is not ours")
    return SignedEnvelope(token, _decoded(parts[1]), header["typ"], header["kid"])


def _header_text(kid: str, schema_id: str) -> str:
    """Return the one header that a token of this key and schema has."""
    header = {"alg": ALGORITHM, "kid": kid, "typ": schema_id}
    return _encoded(json.dumps(header, separators=(",", ":")).encode())


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def _decoded(text: str) -> bytes:
    """Return the bytes that are spelled exactly so; the last character of a part can be written in several ways."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise TokenRefusedError("not a token") from None
    if _encoded(raw) != text:
        raise TokenRefusedError("the token is spelled otherwise")
    return raw


def _require_plain(token: object) -> None:
    if not isinstance(token, str) or not token.isascii() or len(token) > MAX_TOKEN_CHARS:
        raise TokenRefusedError("not a token")
