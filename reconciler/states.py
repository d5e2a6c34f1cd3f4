"""Which states a request for a person can have, which of them are final, and with what evidence each comes."""

from enum import StrEnum


class AttentionState(StrEnum):
    """What a source says of one request.

    active        the runtime can show the pending action now. Put here by an observation; frees reminders.
    unavailable   the source cannot prove anything now. Freezes reminders, leaves the message; may go back to active.
    resolved      answered, approved or recovered, by the runtime's own evidence. Terminal.
    cancelled     denied, or the recovery was blocked. Terminal.
    superseded    replaced, for instance by an interruption. Terminal.
    expired       the runtime committed the expiry. Terminal.

    Terminal rows are never changed again; only retention deletes them.
    """

    ACTIVE = "active"
    UNAVAILABLE = "unavailable"
    RESOLVED = "resolved"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"

    @property
    def is_terminal(self) -> bool:
        """Answer whether a request in this state is over for good."""
        return self in TERMINAL_STATES


TERMINAL_STATES = frozenset(
    {AttentionState.RESOLVED, AttentionState.CANCELLED, AttentionState.SUPERSEDED, AttentionState.EXPIRED}
)
OPEN_STATES = frozenset({AttentionState.ACTIVE, AttentionState.UNAVAILABLE})


class Evidence(StrEnum):
    """Why a source says what it says: the reason that comes with a state (Cayu's own words, closed)."""

    CURRENT_ACTION = "current_action"
    DURABLE_CLOSURE = "durable_closure"
    DURABLE_SUPERSESSION = "durable_supersession"
    SESSION_UNAVAILABLE = "session_unavailable"
    SESSION_REPLACED = "session_replaced"
    INCOMPLETE_QUERY = "incomplete_query"
    NO_TERMINAL_EVIDENCE = "no_terminal_evidence"
    STORE_UNAVAILABLE = "store_unavailable"


class Kind(StrEnum):
    """What kind of request waits for a person."""

    USER_INPUT = "user_input"
    TOOL_APPROVAL = "tool_approval"
    MANUAL_RECOVERY = "manual_recovery"
    AGENT_INPUT = "agent_input"


# The only text that Handbell says about a request by default: the runtime's fixed summaries, content-free.
SUMMARIES = {
    Kind.USER_INPUT: "User input required.",
    Kind.TOOL_APPROVAL: "Tool approval required.",
    Kind.MANUAL_RECOVERY: "Manual recovery required.",
    Kind.AGENT_INPUT: "Agent input required.",
}
