"""What a source can be asked about (a reference) and what it says (an observation)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from reconciler.states import AttentionState, Evidence, Kind
from reconciler.tables import ACTION_ID_CHARS, ID_CHARS, SESSION_ID_CHARS

# Of an index entry PostgreSQL takes 2,704 bytes (a third of a page); the rest is room for the namespace.
MAX_SESSION_ID_BYTES = 2048
MAX_SEQUENCE = 2**63 - 1

_NO_LABELS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Reference:
    """The exact identity of one request at its source; internal, never sent to a person.

    `attention_id` is the source's own logical identity; the other fields are what the source needs to
    observe it again. A pause token has no session instance and no sequence: empty; its `action_id` is the jti.
    """

    attention_id: str
    session_id: str
    session_instance_id: str
    kind: Kind
    action_id: str
    round_id: str | None = None
    tool_call_id: str | None = None
    source_sequence: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What is known of a request besides its identity: who asks, for whom, since when; content-free.

    `public_session_id` is the runtime's public alias where it has one; only that may appear in a link.
    """

    agent_name: str | None = None
    requester: str | None = None
    environment_name: str | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: _NO_LABELS)
    paused_at: datetime | None = None
    public_session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What a source said about one reference at one moment.

    `request` comes only where the source showed the action itself (a scan, a refresh, a push); a later
    observation without it never blanks out what was known.
    """

    reference: Reference
    state: AttentionState
    reason: Evidence
    observed_at: datetime
    request: Request | None = None


def is_storable(reference: Reference) -> bool:
    """Answer whether every database takes the identity as it is, and can find it by its session again.

    One that is not cannot be kept, whatever is done: it must be left out and counted, or its whole page would fail.
    """
    bounded = (
        (reference.attention_id, ID_CHARS),
        (reference.session_id, SESSION_ID_CHARS),
        (reference.session_instance_id, ID_CHARS),
        (reference.action_id, ACTION_ID_CHARS),
        (reference.round_id or "", ID_CHARS),
        (reference.tool_call_id or "", ID_CHARS),
    )
    if not all(len(text) <= limit and storable_text(text) == text for text, limit in bounded):
        return False
    sequence = reference.source_sequence or 0
    return len(reference.session_id.encode()) <= MAX_SESSION_ID_BYTES and abs(sequence) <= MAX_SEQUENCE


def storable_text(text: str) -> str:
    """Return `text` with U+FFFD for what PostgreSQL takes in no text: NUL, and half a surrogate pair."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
    return "".join("\ufffd" if char == "\0" or "\ud800" <= char <= "\udfff" else char for char in text)


def cayu_attention_id(reference: Reference) -> str:
    """Compute the identity that Cayu 0.15 gives to a pending action, without cayu installed.

    sha256 of the compact ASCII JSON of [session_id, session_instance_id, kind, action_id, tool_call_id for a
    manual recovery else null], as lower-case hex behind `attention_`. Cayu is the oracle in the tests.
    """
    tool_call_id = reference.tool_call_id if reference.kind is Kind.MANUAL_RECOVERY else None
    identity = [
        reference.session_id,
        reference.session_instance_id,
        reference.kind.value,
        reference.action_id,
        tool_call_id,
    ]
    canonical = json.dumps(identity, ensure_ascii=True, separators=(",", ":"))
    return "attention_" + hashlib.sha256(canonical.encode("ascii")).hexdigest()
