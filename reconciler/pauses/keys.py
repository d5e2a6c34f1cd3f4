"""Under which names a pause is found again: its records' keys and its identifiers."""

import uuid

from .claims import ASK_USER, PauseClaims
from .errors import PayloadBindingError

ASK_USER_KEY_PREFIX = "ask_user_request:"
"""Before the call id of a recorded question (the published relative's spelling)."""

INTERRUPT_KEY_PREFIX = "interrupt_payload:"
"""Before the interrupt id of any other recorded request (the published relative's spelling)."""

TURN_STATE_KEY_PREFIX = "turn_state:"
"""Before the token's id of a recorded turn (ours: neither source names one)."""

_INTERRUPT_PREFIX = "i-"
_INTERRUPT_HEX_CHARS = 12


def payload_key(*, name: str, tool_call_id: str, interrupt_id: str) -> str:
    """Return the key of the recorded request.

    Raises PayloadBindingError where the id that the key is made of is missing.
    """
    prefix, key_id = (ASK_USER_KEY_PREFIX, tool_call_id) if name == ASK_USER else (INTERRUPT_KEY_PREFIX, interrupt_id)
    if not key_id:
        raise PayloadBindingError(f"a pause of {name!r} has no id to record its request under")
    return prefix + key_id


def payload_key_of(claims: PauseClaims) -> str:
    """Return the key that the token's request is recorded under."""
    return payload_key(name=claims.name, tool_call_id=claims.tool_call_id, interrupt_id=claims.interrupt_id)


def turn_state_key(jti: str) -> str:
    """Return the key of the recorded turn: the token's own id, so that a second pause on one call keeps the first.

    Raises PayloadBindingError without one.
    """
    if not jti:
        raise PayloadBindingError("a turn has no token id to be recorded under")
    return TURN_STATE_KEY_PREFIX + jti


def interrupt_id_for(name: str, given: str = "") -> str:
    """Return the interrupt id of a pause: none for a question, else the given one or a fresh one."""
    if name == ASK_USER:
        return ""
    return given or _INTERRUPT_PREFIX + uuid.uuid4().hex[:_INTERRUPT_HEX_CHARS]


def new_jti() -> str:
    """Return the id of a token: 32 hex digits, 122 of their bits random."""
    return uuid.uuid4().hex
