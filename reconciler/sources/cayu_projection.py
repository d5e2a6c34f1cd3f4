"""Projects a page of Cayu's pending actions, and Cayu's words for a state, onto Handbell's own; pure.

Only identities and labels are read of an action: never its title, detail, question, options or arguments.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.references import Observation, Reference, Request, is_storable
from reconciler.sources.protocol import Delegation
from reconciler.states import AttentionState, Evidence, Kind
from reconciler.tables import ID_CHARS

if TYPE_CHECKING:
    from cayu.runtime import HumanAttentionReference
    from cayu.sessions import PendingActionRecord

# What Cayu's own handoff can carry as a requester (cayu.human_attention_handoff, 0.15.0): the same by every door.
_REQUESTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+=-]{0,199}")


@dataclass(frozen=True, slots=True)
class Row:
    """One projectable action: its observation, and what the admission of an unknown one needs besides."""

    observation: Observation
    parent_session_id: str | None
    agent_name: str

    @property
    def attention_id(self) -> str:
        """Return the identity of the request."""
        return self.observation.reference.attention_id


@dataclass(frozen=True, slots=True)
class DelegationRow:
    """One parent that waits on a child, and where it stands itself."""

    delegation: Delegation
    parent_session_id: str | None
    agent_name: str


@dataclass(frozen=True, slots=True)
class Projection:
    """What one query showed, in its order (newest change first)."""

    rows: tuple[Row, ...]
    delegations: tuple[DelegationRow, ...]
    unprojectable_count: int
    oldest_updated_at: datetime | None


def project(actions: "Iterable[PendingActionRecord]", *, seen_at: datetime, requester_label: str | None) -> Projection:
    """Project the actions of one query; `seen_at` is the moment before it was made."""
    rows: list[Row] = []
    delegations: list[DelegationRow] = []
    unprojectable_count = 0
    oldest_updated_at: datetime | None = None
    for action in actions:
        if oldest_updated_at is None or action.session.updated_at < oldest_updated_at:
            oldest_updated_at = action.session.updated_at
        if action.delegated_action is not None:
            delegation = Delegation(action.session.id, action.delegated_action.child_session_id)
            delegations.append(DelegationRow(delegation, action.session.parent_session_id, action.session.agent_name))
            continue
        reference = _reference(action)
        if reference is None:
            unprojectable_count += 1
            continue
        request = _request(action, requester_label)
        observation = Observation(reference, AttentionState.ACTIVE, Evidence.CURRENT_ACTION, seen_at, request)
        rows.append(Row(observation, action.session.parent_session_id, action.session.agent_name))
    return Projection(tuple(rows), tuple(delegations), unprojectable_count, oldest_updated_at)


def requester_of(labels: Mapping[str, str], label: str | None) -> str | None:
    """Return the requester that `labels` name, None where they name none or one that is not an identifier."""
    value = labels.get(label) if label is not None else None
    return value if value is not None and _REQUESTER.fullmatch(value) else None


def observed(state: str, reason: str) -> tuple[AttentionState, Evidence]:
    """Translate Cayu's words for a state.

    A newer runtime may say a word that we do not know: nothing may be concluded from it, so the request is
    unavailable without terminal evidence, kept and asked about again.
    """
    try:
        return AttentionState(state), Evidence(reason)
    except ValueError:
        return AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE


def cayu_reference(reference: Reference) -> "HumanAttentionReference":
    """Return Cayu's form of a reference; ValueError where its identity does not match its fields."""
    from cayu.runtime import HumanAttentionReference

    return HumanAttentionReference.model_validate(
        {
            "attention_id": reference.attention_id,
            "session_id": reference.session_id,
            "session_instance_id": reference.session_instance_id,
            "kind": reference.kind.value,
            "action_id": reference.action_id,
            "round_id": reference.round_id,
            "tool_call_id": reference.tool_call_id,
            # Not part of the identity; evidence is looked for after it, so the first event is the safe default.
            "source_sequence": reference.source_sequence or 1,
        }
    )


def _reference(action: "PendingActionRecord") -> Reference | None:
    """Return the action's reference by Cayu's own projection; None where it has no identity that can be kept."""
    from cayu.runtime import HumanAttentionRequest

    try:
        request = HumanAttentionRequest.from_pending_action(action)
    except ValueError:
        return None
    if request is None or request.reference.kind not in _KINDS:
        return None
    found = request.reference
    reference = Reference(
        attention_id=found.attention_id,
        session_id=found.session_id,
        session_instance_id=found.session_instance_id,
        kind=_KINDS[found.kind],
        action_id=found.action_id,
        round_id=found.round_id,
        tool_call_id=found.tool_call_id,
        source_sequence=found.source_sequence,
    )
    return reference if is_storable(reference) else None


_KINDS: Mapping[str, Kind] = MappingProxyType(
    {kind.value: kind for kind in (Kind.USER_INPUT, Kind.TOOL_APPROVAL, Kind.MANUAL_RECOVERY)}
)


def _request(action: "PendingActionRecord", requester_label: str | None) -> Request:
    session = action.session
    return Request(
        agent_name=session.agent_name[:ID_CHARS],
        requester=requester_of(session.labels, requester_label),
        environment_name=session.environment_name[:ID_CHARS] if session.environment_name else None,
        labels=dict(session.labels),  # a plain one: it may cross to another process
        paused_at=action.event.event.timestamp.astimezone(UTC),
    )
