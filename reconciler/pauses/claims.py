"""The claims that a pause token carries: their canonical bytes, and the strict way back.

The bytes are read only after the signer vouched for them, and are still not trusted to be well-formed: a
signed mistake must be a refusal, not a crash and not an immortal token.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, NoReturn, Self

from .errors import PauseTokenUnauthorizedError

ASK_USER = "ask_user"
"""The name of the built-in interaction (the documentation's and the published relative's word)."""

LEGACY_CLAIM_KEYS = frozenset({
    "run_id", "session_id", "scope_hash", "thread_id", "checkpoint_id", "tool_call_id", "request_hash",
    "exp", "jti", "name", "interrupt_id",
})  # fmt: skip
"""The keys of tokens minted before root run, issue time and pinning were claims.

The documentation does not list them; these are the eleven that symfonic-core 9.12.0 mints."""

MAX_CLAIM_CHARS = 2_048
"""The longest text claim that is minted or read (ours: the documentation bounds none)."""

MAX_CLAIMS_BYTES = 65_536
"""The longest body that is minted or parsed (ours)."""

MAX_EPOCH_SECONDS = 253_402_300_799
"""The last second of the year 9999: a later instant is a mistake, and no `datetime` holds it."""


@dataclass(frozen=True, slots=True)
class PauseClaims:
    """What the token binds: one pause of one call of one run, until `exp`.

    `exp` is whole epoch seconds, inclusive; `issued_at` is epoch seconds, 0.0 where an older token does not
    say. `request_hash` is of the recorded request's text. `legacy_pinned` marks a token of the format that a
    retirement horizon ends.
    """

    run_id: str
    session_id: str
    scope_hash: str
    thread_id: str
    checkpoint_id: str
    request_hash: str
    exp: int
    jti: str
    root_run_id: str = ""
    tool_call_id: str = ""
    name: str = ASK_USER
    interrupt_id: str = ""
    issued_at: float = 0.0
    legacy_pinned: bool = False

    def as_legacy_dict(self) -> dict[str, Any]:
        """Return exactly the older format's keys."""
        return {key: getattr(self, key) for key in sorted(LEGACY_CLAIM_KEYS)}

    def encode(self) -> bytes:
        """Return the canonical bytes: sorted keys, no spaces, every character beyond ASCII escaped."""
        everything = {key: getattr(self, key) for key in _KNOWN_CLAIM_KEYS}
        return json.dumps(everything, separators=(",", ":"), sort_keys=True).encode("utf-8")

    @classmethod
    def decode(cls, raw: object) -> Self:
        """Read verified bytes back; call it only with what a signer has vouched for.

        Raises PauseTokenUnauthorizedError, naming the claim, for anything but one JSON object of exactly the
        known keys, once each, each of its own type and within its bound. NaN and infinities are no numbers,
        a boolean is no number, and a text that cannot be stored (NUL, half a surrogate pair) is no text.
        """
        body = parse_body(raw)
        if not _REQUIRED_CLAIM_KEYS <= body.keys() <= _KNOWN_CLAIM_KEYS:
            raise _misshapen(body)
        for key, value in body.items():
            if not _CHECKS[key](value):
                raise PauseTokenUnauthorizedError(f"the pause token's claim {key!r} is not of its type")
        if "issued_at" in body:
            body["issued_at"] = float(body["issued_at"])
        return cls(**body)

    def misfit(self) -> str | None:
        """Return the name of a claim that `decode` would refuse, None where it would take them all.

        Asked before signing: a token that cannot be read back must not be made.
        """
        for key in sorted(_KNOWN_CLAIM_KEYS):
            if not _CHECKS[key](getattr(self, key)):
                return key
        return None if len(self.encode()) <= MAX_CLAIMS_BYTES else "thread_id"

    def expired(self, now: float) -> bool:
        """Return whether the window is closed at `now`; at `exp` itself it is still open.

        Written as the negation of "in time", so that an instant that is no number counts as too late.
        """
        return not now <= self.exp


_KNOWN_CLAIM_KEYS = frozenset(field.name for field in fields(PauseClaims))
_ADDED_CLAIM_KEYS = _KNOWN_CLAIM_KEYS - LEGACY_CLAIM_KEYS
_REQUIRED_CLAIM_KEYS = frozenset(field.name for field in fields(PauseClaims) if field.default is MISSING)

ADDED_CLAIM_KEYS = _ADDED_CLAIM_KEYS
REQUIRED_CLAIM_KEYS = _REQUIRED_CLAIM_KEYS


def parse_body(raw: object) -> dict[str, Any]:
    """Return the one JSON object in a verified body, whatever its claims.

    Raises PauseTokenUnauthorizedError for anything else: other bytes than UTF-8, NaN, a key that stands twice.
    """
    if not isinstance(raw, bytes) or len(raw) > MAX_CLAIMS_BYTES:
        raise PauseTokenUnauthorizedError("the pause token's body cannot be read")
    try:
        # Decoded first: json.loads(bytes) would also take UTF-16 and UTF-32, other spellings of one body.
        body = _STRICT.decode(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise PauseTokenUnauthorizedError("the pause token's body cannot be read") from error
    if not isinstance(body, dict):
        raise PauseTokenUnauthorizedError("the pause token's body is no set of claims")
    return body


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    if len(body) != len(pairs):
        raise ValueError("a key stands twice")
    return body


# Made once: json.loads with hooks makes one for each call.
_STRICT = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_once_each)


def is_expiry(value: object) -> bool:
    """Return whether a claim is an instant in whole epoch seconds; a boolean is none."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_EPOCH_SECONDS


def is_text(value: object) -> bool:
    """Return whether a claim is text that can be stored: bounded, without NUL and without half a surrogate pair."""
    if not isinstance(value, str) or len(value) > MAX_CLAIM_CHARS or "\x00" in value:
        return False
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def _is_issue_time(value: object) -> bool:
    # 1e999 parses as infinity without being a constant; the comparison refuses it, and any huge integer.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_EPOCH_SECONDS


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


_CHECKS: Mapping[str, Callable[[object], bool]] = dict.fromkeys(_KNOWN_CLAIM_KEYS, is_text) | {
    "exp": is_expiry,
    "issued_at": _is_issue_time,
    "legacy_pinned": _is_flag,
}


def _misshapen(body: dict[str, Any]) -> PauseTokenUnauthorizedError:
    unknown = sorted(body.keys() - _KNOWN_CLAIM_KEYS)
    if unknown:
        return PauseTokenUnauthorizedError(f"the pause token holds an unknown claim: {unknown[0][:40]!r}")
    missing = sorted(_REQUIRED_CLAIM_KEYS - body.keys())
    return PauseTokenUnauthorizedError(f"the pause token lacks a claim: {missing[0]!r}")
