"""Which events may change what waits for a person: the exact sets of Cayu's own handoff."""

from typing import Any

from .hint import Hint

# Always of interest: they open, settle or move a request.
LIFECYCLE_EVENTS = frozenset(
    {
        "session.awaiting_user_input",
        "session.interrupted",
        "session.delegated_action.updated",
        "session.resumed",
        "session.completed",
        "session.failed",
        "tool.call.approval_requested",
        "tool.call.approved",
        "tool.call.approval_denied",
        "tool.call.approval_expired",
    }
)

# Frequent; they can only settle, so they matter only for a session that is known to hold an open request.
FOLLOW_UP_EVENTS = frozenset(
    {
        "session.checkpointed",
        "tool.call.completed",
        "tool.call.blocked",
        "tool.call.failed",
    }
)

WAKE_UP_EVENTS = LIFECYCLE_EVENTS | FOLLOW_UP_EVENTS


def hint_of(event: Any, namespace: str) -> Hint | None:
    """Return the hint of a Cayu event, or None where its type is outside the wake-up set.

    Nothing but its identity, type and time is read. Raises `MalformedHint` for an identity beyond the bounds.
    """
    event_type = str(event.type)
    if event_type not in WAKE_UP_EVENTS:
        return None
    return Hint(
        namespace=namespace,
        session_id=event.session_id,
        event_id=event.id,
        type=event_type,
        occurred_at=event.timestamp,
    )
