"""What the receiver answers instead of doing as asked: a status and a fixed code, never the request's own text.

The client of the handoff (Cayu 0.15) reads the code from `detail.code` and reacts by the status: 401, 403 and 409
mean *declined* and drop the event, everything else is tried again. So our own trouble is 503 and never one of them.
"""

import re
from enum import StrEnum

from pydantic import ValidationError
from starlette.responses import JSONResponse

_RETRY_AFTER_SECONDS = 5
# Reading out a hundred thousand mistakes takes seconds, in which the process answers nobody.
_MOST_TOLD = 1000
# A field of ours or a position; anything else in a location is the sender's own text.
_OUR_WORD = re.compile(r"[a-z][a-z_]{0,39}")


class Code(StrEnum):
    """Every refusal there is; documented in docs/handoff-v1.md."""

    INVALID_TOKEN = "invalid_token"  # noqa: S105  # the name of a refusal
    UNSUPPORTED_PROTOCOL = "unsupported_protocol"
    INVALID_BODY = "invalid_body"
    INVALID_QUERY = "invalid_query"
    TOO_MANY_OBSERVATIONS = "too_many_observations"
    IDENTITY_MISMATCH = "identity_mismatch"
    BODY_TOO_LARGE = "body_too_large"
    BODY_TOO_SLOW = "body_too_slow"
    RATE_LIMITED = "rate_limited"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CAPTURE_MISMATCH = "capture_mismatch"
    DATABASE_BUSY = "database_busy"
    KEYS_UNAVAILABLE = "keys_unavailable"
    SHUTTING_DOWN = "shutting_down"
    TIMED_OUT = "timed_out"
    UNEXPECTED = "unexpected"


STATUSES: dict[Code, int] = {
    Code.INVALID_TOKEN: 401,
    Code.UNSUPPORTED_PROTOCOL: 422,
    Code.INVALID_BODY: 422,
    Code.INVALID_QUERY: 422,
    Code.TOO_MANY_OBSERVATIONS: 422,
    Code.IDENTITY_MISMATCH: 409,
    Code.BODY_TOO_LARGE: 413,
    Code.BODY_TOO_SLOW: 408,
    Code.RATE_LIMITED: 429,
    Code.NOT_FOUND: 404,
    Code.METHOD_NOT_ALLOWED: 405,
    Code.CAPTURE_MISMATCH: 409,
    Code.DATABASE_BUSY: 503,
    Code.KEYS_UNAVAILABLE: 503,
    Code.SHUTTING_DOWN: 503,
    Code.TIMED_OUT: 503,
    Code.UNEXPECTED: 500,
}
_TRANSIENT = frozenset({
    Code.RATE_LIMITED, Code.DATABASE_BUSY, Code.KEYS_UNAVAILABLE, Code.SHUTTING_DOWN, Code.TIMED_OUT, Code.UNEXPECTED,
})  # fmt: skip


class Refused(Exception):  # noqa: N818  # states a fact
    """A request is not done, as a whole; nothing of it was written. `message` never repeats the request."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def refusal(code: Code, message: str, *, closes: bool = False) -> JSONResponse:
    """Return the JSON answer of a refusal; `closes` ends the connection (its body was not read)."""
    headers = {}
    if code in _TRANSIENT:
        headers["Retry-After"] = str(_RETRY_AFTER_SECONDS)
    if code is Code.INVALID_TOKEN:
        headers["WWW-Authenticate"] = "Bearer"
    if closes:
        headers["Connection"] = "close"
    return JSONResponse({"detail": {"code": code.value, "message": message}}, STATUSES[code], headers)


def refused_input(error: ValidationError, otherwise: Code) -> Refused:
    """Say what the first wrong place of a request is, in pydantic's words about types but without any value."""
    if error.error_count() > _MOST_TOLD:
        return Refused(otherwise, f"body: more than {_MOST_TOLD} places are wrong")
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    first = problems[0]
    for problem in problems:
        if problem["loc"] == ("protocol",):
            return Refused(
                Code.UNSUPPORTED_PROTOCOL, "the protocol of the body is not the one that this receiver speaks"
            )
        if problem["loc"] == ("observations",) and problem["type"] == "too_long":
            return Refused(Code.TOO_MANY_OBSERVATIONS, "at most 200 observations in one request")
    place = ".".join(_said(step) for step in first["loc"]) or "body"
    return Refused(otherwise, f"{place}: {first['type']} ({len(problems)} wrong)")


def _said(step: int | str) -> str:
    if isinstance(step, int) or _OUR_WORD.fullmatch(step):
        return str(step)
    return "?"
