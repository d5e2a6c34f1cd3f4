"""What a token is bound to: four axes of place, and the request's own text."""

import hashlib
import json
from typing import Any

from .claims import PauseClaims
from .errors import (
    CallBindingError,
    PayloadBindingError,
    RunBindingError,
    ScopeBindingError,
    SessionBindingError,
)
from .scopes import hash_scope


def payload_body(payload: Any) -> str:
    """Return the text of a request that is hashed and recorded.

    A model speaks for itself (`model_dump_json`); anything else becomes JSON with sorted keys, and what JSON
    does not know becomes its `str`. The documentation leaves the text open; this is the published relative's.
    The same fields in a model and in a dict give two texts, so one text serves both mint and record.
    Raises TypeError or ValueError for what no text can be made of.
    """
    dump = getattr(payload, "model_dump_json", None)
    if callable(dump):
        return str(dump())
    return json.dumps(payload, sort_keys=True, default=str)


def hash_payload_body(body: str) -> str:
    """Return 64 hex digits of SHA-256 over the text."""
    return hashlib.sha256(body.encode("utf-8")).hexdigest()


def hash_payload(payload: Any) -> str:
    """Return the hash of the request's text."""
    return hash_payload_body(payload_body(payload))


def call_id_of(claims: PauseClaims) -> str:
    """Return the call that the token pauses: the tool call where there is one, else the interrupt."""
    return claims.tool_call_id or claims.interrupt_id


class ScopeBinder:
    """Compares what is presented with what was minted; holds no state."""

    def scope_hash(self, scope: object) -> str:
        """Return the hash that tokens minted in this scope carry; raises ScopeBindingError."""
        return hash_scope(scope)

    def request_body(self, payload: Any) -> str:
        """Return the text that is hashed and recorded; raises PayloadBindingError where none can be made."""
        try:
            body = payload_body(payload)
            body.encode("utf-8")
        except (TypeError, ValueError, RecursionError) as error:
            raise PayloadBindingError("the request cannot be written as text") from error
        return body

    def check(
        self,
        claims: PauseClaims,
        *,
        scope: object,
        session_id: str | None = None,
        run_id: str | None = None,
        call_id: str | None = None,
        cross_scope_allowed: bool = False,
    ) -> bool:
        """Compare the four axes, in the order scope, session, run, call; the first mismatch is the error.

        None means that the axis was not stated and is not compared; "" is stated and is. The last three are
        compared even where scopes may be crossed. Returns whether they were.
        """
        crossed = self.scope_hash(scope) != claims.scope_hash
        if crossed and not cross_scope_allowed:
            raise ScopeBindingError("the pause token belongs to another scope")
        if session_id is not None and session_id != claims.session_id:
            raise SessionBindingError("the pause token belongs to another session")
        if run_id is not None and run_id != claims.run_id:
            raise RunBindingError("the pause token belongs to another run")
        if call_id is not None and call_id != call_id_of(claims):
            raise CallBindingError("the pause token belongs to another call")
        return crossed

    def check_payload(self, claims: PauseClaims, payload: Any) -> None:
        """Raise PayloadBindingError unless the request is the one that was hashed at the mint."""
        if not self.payload_body_matches(claims, self.request_body(payload)):
            raise PayloadBindingError("the request is not the one that the pause token binds")

    def payload_body_matches(self, claims: PauseClaims, body: str) -> bool:
        """Return whether this recorded text is the one that was hashed at the mint."""
        return hash_payload_body(body) == claims.request_hash
