"""What travels in `cayu.human-attention-handoff/v1`: the bodies and queries of its four calls, and their meaning to us.

The only pydantic of the receiver. Unknown fields, wrong types and over-long values are refused; what cannot be
stored (NUL, lone surrogates) cannot be said. docs/handoff-v1.md is the same in prose, worker/web/openapi.py in JSON
Schema.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field, StringConstraints

from reconciler.references import Observation, Reference, Request
from reconciler.states import AttentionState, Evidence, Kind

PROTOCOL = "cayu.human-attention-handoff/v1"
MAX_OBSERVATIONS = 200  # the client's own bound (cayu.human_attention_handoff.MAX_OBSERVATIONS)
MAX_VERIFY = 200  # more in one answer make the client of Cayu 0.15 raise inside `emit`
MAX_REFERENCES = 200
MAX_COUNT = 2**63 - 1

# An index entry of PostgreSQL holds at most about 2700 bytes.
_MAX_SESSION_ID_BYTES = 2048


def storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("NUL cannot be stored")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError("lone surrogates cannot be stored") from None
    if size > _MAX_SESSION_ID_BYTES * 2:
        raise ValueError("too many bytes")
    return text


def _indexable(text: str) -> str:
    if len(text.encode()) > _MAX_SESSION_ID_BYTES:
        raise ValueError("too many bytes")
    return text


# The bounds are those of Cayu's HumanAttentionReference.
Text = Annotated[str, StringConstraints(max_length=512), AfterValidator(storable)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=512), AfterValidator(storable)]
ActionId = Annotated[str, StringConstraints(min_length=1, max_length=4096), AfterValidator(storable)]
SessionId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2048),
    AfterValidator(storable),
    AfterValidator(_indexable),
]
Cursor = Annotated[str, StringConstraints(min_length=1, max_length=8192), AfterValidator(storable)]
Version = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(storable)]
AttentionId = Annotated[str, StringConstraints(pattern=r"^attention_[0-9a-f]{64}$")]
RequesterRef = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@+=-]{0,199}$")]
IssueWord = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]


class Wire(BaseModel):
    """What every body has in common: strict types, nothing unknown, no value repeated in an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class ReferenceIn(Wire):
    """The exact identity of one request; the private correlation data of the runtime."""

    attention_id: AttentionId
    session_id: SessionId
    session_instance_id: Id
    kind: Literal["user_input", "tool_approval", "manual_recovery"]
    action_id: ActionId
    round_id: Text | None = None
    tool_call_id: Text | None = None
    source_sequence: Annotated[int, Field(ge=1, le=MAX_COUNT)]

    def reference(self) -> Reference:
        """Return the same for the inner rooms."""
        return Reference(
            self.attention_id,
            self.session_id,
            self.session_instance_id,
            Kind(self.kind),
            self.action_id,
            self.round_id,
            self.tool_call_id,
            self.source_sequence,
        )


class ObservationIn(Wire):
    """What the runtime says of one reference; a scan or a sink adds who asks, a verify answer does not."""

    reference: ReferenceIn
    state: AttentionState
    reason: Evidence
    agent_name: Text | None = None
    requester_ref: RequesterRef | None = None
    summary: Text | None = None  # fixed by the runtime; ours are said instead, so no foreign text gets in

    def observation(self, *, observed_at: datetime) -> Observation:
        """Return the same for the inner rooms; with a request only where the sender showed the action itself."""
        shown = {"agent_name", "summary", "requester_ref"} & self.model_fields_set
        request = Request(agent_name=self.agent_name or None, requester=self.requester_ref) if shown else None
        return Observation(self.reference.reference(), self.state, self.reason, observed_at, request)


class SessionScope(Wire):
    """`complete`: the batch holds everything that is pending in the session now. Not a proof of any closure."""

    session_id: SessionId
    complete: bool


class Scan(Wire):
    """Where the sender's scan stands behind this batch; `cursor` is null at its end."""

    cursor: Cursor | None
    complete: bool


class Observations(Wire):
    """The body of POST observations."""

    protocol: Literal["cayu.human-attention-handoff/v1"]
    runtime_version: Version
    observations: Annotated[tuple[ObservationIn, ...], Field(max_length=MAX_OBSERVATIONS), FailFast()]
    session_scope: SessionScope | None = None
    scan: Scan | None = None


class Reconciliation(Wire):
    """The body of POST reconciliations: what one repair pass of the sender did."""

    protocol: Literal["cayu.human-attention-handoff/v1"]
    runtime_version: Version
    issues: Annotated[tuple[IssueWord, ...], Field(max_length=32), FailFast()]
    observed: Count
    pages: Count
    scan_complete: bool
    verify_complete: bool


class ReferencesQuery(BaseModel):
    """The query of GET references; `after` is what `next_after` said."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    limit: Annotated[int, Field(ge=1, le=MAX_REFERENCES)] = 100
    after: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")] | None = None
    session_id: SessionId | None = None


def wire_reference(reference: Reference) -> dict[str, str | int | None]:
    """Return a reference as the client's own model reads it."""
    return {
        "attention_id": reference.attention_id,
        "session_id": reference.session_id,
        "session_instance_id": reference.session_instance_id,
        "kind": reference.kind.value,
        "action_id": reference.action_id,
        "round_id": reference.round_id,
        "tool_call_id": reference.tool_call_id,
        "source_sequence": reference.source_sequence,
    }
