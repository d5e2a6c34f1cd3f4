"""What a source can be asked about (a reference) and what it says (an observation)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from reconciler.states import AttentionState, Evidence, Kind

_NO_LABELS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Reference:
    """The exact identity of one request at its source; internal, never sent to a person.

    `attention_id` is the source's own logical identity; the other fields are what the source needs to
    observe it again. A pause token has no session instance, no action and no sequence of its own: empty.
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
