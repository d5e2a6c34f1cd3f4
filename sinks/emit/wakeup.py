"""Which event types may change what waits for a person: the exact sets of Cayu's own handoff."""

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
