"""Which states a request for a person can have, which of them are final, and with what evidence each comes."""

from enum import StrEnum


class AttentionState(StrEnum):
    """What a source says of one request; only an observation puts it here.

    Terminal rows are never changed again; only retention deletes them.
    """

    ACTIVE = "active"  # the runtime can show the pending action now; only this lets anybody be told that it waits
    UNAVAILABLE = "unavailable"  # nothing can be proven now: nobody is told, messages stay; may be active again
    RESOLVED = "resolved"  # answered, approved or recovered, by the runtime's own evidence; terminal
    CANCELLED = "cancelled"  # denied, or the recovery was blocked; terminal
    SUPERSEDED = "superseded"  # replaced, for instance by an interruption; terminal
    EXPIRED = "expired"  # the runtime committed the expiry; terminal

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

    CURRENT_ACTION = "current_action"  # the runtime shows the pending action now
    DURABLE_CLOSURE = "durable_closure"  # the runtime keeps a record that this very action was closed, and how
    DURABLE_SUPERSESSION = "durable_supersession"  # the runtime keeps a record that this very action was replaced
    SESSION_UNAVAILABLE = "session_unavailable"  # the session is gone, or is not ours to see
    SESSION_REPLACED = "session_replaced"  # another session stands under the same id now
    INCOMPLETE_QUERY = "incomplete_query"  # the runtime's own search was cut short or had problems
    NO_TERMINAL_EVIDENCE = "no_terminal_evidence"  # it is not pending, and nothing kept says what became of it
    STORE_UNAVAILABLE = "store_unavailable"  # the source could not be asked, or its answer could not be read


class Kind(StrEnum):
    """What kind of request waits for a person."""

    USER_INPUT = "user_input"  # the agent asked a question
    TOOL_APPROVAL = "tool_approval"  # a call of a tool waits for an approval
    MANUAL_RECOVERY = "manual_recovery"  # the outcome of a call is uncertain, and a person has to say it
    AGENT_INPUT = "agent_input"  # an agent waits for the answer to a pause token


# The only text that Handbell says about a request by default: the runtime's fixed summaries, content-free.
SUMMARIES = {
    Kind.USER_INPUT: "User input required.",
    Kind.TOOL_APPROVAL: "Tool approval required.",
    Kind.MANUAL_RECOVERY: "Manual recovery required.",
    Kind.AGENT_INPUT: "Agent input required.",
}
