"""What an answer token says: as little as a link may carry. Everything else stands in its issuance's row."""

import json
from dataclasses import asdict, dataclass
from typing import Self

from reconciler.pauses import PauseTokenUnauthorizedError
from reconciler.pauses.claims import is_expiry, is_text, parse_body

_KEYS = ("exp", "jti", "request_hash", "scope_hash")


@dataclass(frozen=True, slots=True)
class AnswerClaims:
    """Which answer token this is, until when, and for whose and which request; `exp` is whole epoch seconds, inclusive.

    Session, run, call and recipient are left out: a token can be read by whoever sees the link.
    """

    jti: str
    exp: int
    scope_hash: str
    request_hash: str

    def encode(self) -> bytes:
        """Return the canonical bytes."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True).encode()

    @classmethod
    def decode(cls, raw: object) -> Self:
        """Read verified bytes back, as strictly as a pause token's.

        Raises PauseTokenUnauthorizedError for anything but exactly these claims, once each, each of its type.
        """
        body = parse_body(raw)
        if sorted(body) != list(_KEYS):
            raise PauseTokenUnauthorizedError("the answer token does not hold exactly its claims")
        for key in _KEYS:
            if not (is_expiry if key == "exp" else is_text)(body[key]):
                raise PauseTokenUnauthorizedError(f"the answer token's claim {key!r} is not of its type")
        return cls(**body)

    def expired(self, now: float) -> bool:
        """Return whether the window is closed at `now` (epoch seconds); at `exp` itself it is still open."""
        return not now <= self.exp
