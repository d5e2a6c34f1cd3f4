"""What of a Cayu server's answers is read, and how an inbox item's state is said in ours; pure.

Only identities, times and labels are read: the questions, reasons and texts beside them are dropped unread.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from reconciler.errors import SourceUnavailable
from reconciler.states import AttentionState, Evidence, Kind

_M = TypeVar("_M", bound=BaseModel)

KINDS: Mapping[str, Kind] = MappingProxyType(
    {kind.value: kind for kind in (Kind.USER_INPUT, Kind.TOOL_APPROVAL, Kind.MANUAL_RECOVERY)}
)


class Session(BaseModel):
    """A session by its public alias; only the detail route carries the metadata."""

    id: str = Field(min_length=1)
    agent_name: str
    parent_session_id: str | None = None
    environment_name: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    updated_at: AwareDatetime
    metadata: dict[str, Any] = Field(default_factory=dict)


class _Event(BaseModel):
    sequence: int
    timestamp: AwareDatetime


class _Delegated(BaseModel):
    child_session_id: str


class Action(BaseModel):
    """One pending action."""

    attention_id: str | None
    kind: str
    session: Session
    event: _Event
    delegated_action: _Delegated | None = None


class PendingActions(BaseModel):
    """One page of GET /api/pending-actions."""

    actions: list[Action]
    issues: list[Any]
    next_cursor: str | None
    has_more: bool

    @property
    def oldest_updated_at(self) -> datetime | None:
        """Return the oldest change among the sessions of the page."""
        return min((action.session.updated_at for action in self.actions), default=None)


class _Item(BaseModel):
    id: str
    attention_id: str | None = None


class Inbox(BaseModel):
    """One page of GET /api/inbox."""

    items: list[_Item]


class _Settlement(BaseModel):
    decision: str


class ItemState(BaseModel):
    """GET /api/inbox/{item_id}."""

    status: str
    item: _Item | None = None
    settlement: _Settlement | None = None


_SETTLED = {
    "approve": AttentionState.RESOLVED,
    "answer": AttentionState.RESOLVED,
    # Cayu 0.15 says `recover` of a blocked recovery too: over HTTP cancelled cannot be told from resolved there.
    "recover": AttentionState.RESOLVED,
    "deny": AttentionState.CANCELLED,
    "expire": AttentionState.EXPIRED,
}


def item_state(answer: ItemState, attention_id: str) -> tuple[AttentionState, Evidence]:
    """Translate the state of an inbox item; whatever we do not know proves nothing."""
    if answer.status == "pending" and answer.item is not None and answer.item.attention_id == attention_id:
        return AttentionState.ACTIVE, Evidence.CURRENT_ACTION
    if answer.status == "settled" and answer.settlement is not None and answer.settlement.decision in _SETTLED:
        return _SETTLED[answer.settlement.decision], Evidence.DURABLE_CLOSURE
    if answer.status == "superseded":
        return AttentionState.SUPERSEDED, Evidence.DURABLE_SUPERSESSION
    return AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE


def parsed(model: type[_M], body: Mapping[str, Any]) -> _M:
    """Read an answer's body; raises SourceUnavailable (`bad_answer`) without repeating any of it."""
    try:
        return model.model_validate(body)
    except ValidationError:
        raise SourceUnavailable("bad_answer", "the server answered what the route of Cayu 0.15 does not have") from None
