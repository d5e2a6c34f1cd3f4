"""The tables of what is true and who must know: namespaces, notifications, their history, and the outbox."""

from sqlalchemy import (
    JSON,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from config.metadata import METADATA, ROW_ID, Instant

NAMESPACE_CHARS = 200
ID_CHARS = 512
# Cayu's own bounds of these two (HumanAttentionReference); one longer than a column would stop every later sweep.
SESSION_ID_CHARS = 2048
ACTION_ID_CHARS = 4096
WORD_CHARS = 40

# What a namespace remembers: its store's identity, when its sweeps are due and where an unfinished one stands.
# The first start with a source of that name puts it here; nothing deletes it.
NAMESPACES = Table(
    "namespaces",
    METADATA,
    Column("namespace", String(NAMESPACE_CHARS), primary_key=True),
    Column("source_type", String(WORD_CHARS), nullable=False),
    Column("store_identity", String(ID_CHARS)),
    Column("first_seen_at", Instant(), nullable=False),
    Column("enrolled_after", Instant()),  # the enrollment boundary: nothing paused before it is enrolled
    Column("sweep_due_at", Instant(), nullable=False),
    Column("head_due_at", Instant(), nullable=False),
    Column("scan_cursor", Text()),  # where an incomplete full pass resumes
    Column("scan_started_at", Instant()),  # when the pass that `scan_cursor` belongs to began
    Column("scan_problems", Text(), nullable=False, server_default=""),  # of its pages so far
    Column("complete_since", Instant()),  # the start of the newest full pass that finished complete
    Column("covered_since", Instant()),  # the start of the newest pass, full or head, that saw every change before it
    Column("verify_after", ROW_ID, nullable=False, server_default=text("0")),  # resumes there, wraps at the end
)

# One request for a person. An observation puts it here and changes its state; only retention deletes it.
NOTIFICATIONS = Table(
    "notifications",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("namespace", String(NAMESPACE_CHARS), nullable=False),
    Column("attention_id", String(ID_CHARS), nullable=False),
    Column("kind", String(WORD_CHARS), nullable=False),
    Column("session_id", String(SESSION_ID_CHARS), nullable=False),
    Column("session_instance_id", String(ID_CHARS), nullable=False),
    Column("action_id", String(ACTION_ID_CHARS), nullable=False),
    Column("round_id", String(ID_CHARS)),
    Column("tool_call_id", String(ID_CHARS)),
    Column("source_sequence", ROW_ID),
    Column("agent_name", String(ID_CHARS)),
    Column("requester", String(ID_CHARS)),
    Column("environment_name", String(ID_CHARS)),
    Column("labels", JSON(), nullable=False),
    Column("public_session_id", String(ID_CHARS)),
    Column("paused_at", Instant()),
    Column("state", String(WORD_CHARS), nullable=False),
    Column("reason", String(WORD_CHARS), nullable=False),
    Column("observed_at", Instant(), nullable=False),  # of the observation that the state rests on
    Column("first_seen_at", Instant(), nullable=False),
    Column("state_changed_at", Instant(), nullable=False),
    Column("verify_due_at", Instant(), nullable=False),  # an `unavailable` one is asked about less and less often
    Column("verify_failures", Integer(), nullable=False, server_default=text("0")),
    Column("dismissed_at", Instant()),  # put aside by a person; not a state
    Column("dismissed_because", Text()),
    Column("acknowledged_until", Instant()),  # «I am on it»: no reminders before then
    UniqueConstraint("namespace", "attention_id"),
    CheckConstraint(
        "state IN ('active', 'unavailable', 'resolved', 'cancelled', 'superseded', 'expired')", name="state"
    ),
)
Index("ix_notifications_session", NOTIFICATIONS.c.namespace, NOTIFICATIONS.c.session_id)
Index(
    "ix_notifications_open",
    NOTIFICATIONS.c.namespace,
    NOTIFICATIONS.c.id,
    sqlite_where=text("state IN ('active', 'unavailable')"),
    postgresql_where=text("state IN ('active', 'unavailable')"),
)

# A change of state, or a conflict (another terminal state seen later, which changed nothing). Append-only.
HISTORY = Table(
    "notification_history",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("notification_id", ROW_ID, ForeignKey("notifications.id", ondelete="CASCADE"), nullable=False),
    Column("from_state", String(WORD_CHARS)),
    Column("to_state", String(WORD_CHARS), nullable=False),
    Column("reason", String(WORD_CHARS), nullable=False),
    Column("door", String(WORD_CHARS), nullable=False),
    Column("observed_at", Instant(), nullable=False),
    Column("recorded_at", Instant(), nullable=False),
    Column("is_conflict", Boolean(), nullable=False, server_default=text("false")),
)
Index("ix_notification_history_notification", HISTORY.c.notification_id)

# Something an operator should know (a broken destination, a request unavailable for too long). At most one is open
# per kind and subject; whoever opened it closes it when the cause is gone.
NOTICES = Table(
    "notices",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("kind", String(WORD_CHARS), nullable=False),
    Column("subject", String(ID_CHARS), nullable=False),
    Column("detail", Text(), nullable=False),
    Column("opened_at", Instant(), nullable=False),
    Column("closed_at", Instant()),
)
Index(
    "uq_notices_open",
    NOTICES.c.kind,
    NOTICES.c.subject,
    unique=True,
    sqlite_where=text("closed_at IS NULL"),
    postgresql_where=text("closed_at IS NULL"),
)

# The outbox: notification (or notice) x destination x recipient x purpose, the unit of retry.
#   pending    planned, or to be tried again at `next_attempt_at`.  The plan and the engine put it here.
#   leased     somebody is sending it until `leased_until`; a lapsed lease is taken over.
#   sent       the provider has it.
#   unknown    the provider may have it and cannot be asked yet.
#   dead       not tried again without a person (`handbell redrive`).
#   cancelled  no longer to be said; `reason` says why.
DELIVERIES = Table(
    "deliveries",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("notification_id", ROW_ID, ForeignKey("notifications.id", ondelete="CASCADE")),
    Column("notice_id", ROW_ID, ForeignKey("notices.id", ondelete="CASCADE")),
    Column("destination", String(ID_CHARS), nullable=False),
    Column("channel", String(WORD_CHARS), nullable=False),
    Column("recipient", String(ID_CHARS), nullable=False),
    Column("purpose", String(WORD_CHARS), nullable=False),
    Column("message_key", String(32), nullable=False),  # constant over every try
    Column("route", String(ID_CHARS), nullable=False),  # which route decided
    Column("status", String(WORD_CHARS), nullable=False),
    Column("reason", String(WORD_CHARS), nullable=False),  # why it is what it is: a DecisionReason or FailureReason
    Column("attempts", Integer(), nullable=False, server_default=text("0")),
    Column("provider_ref", Text()),
    Column("next_attempt_at", Instant(), nullable=False),
    Column("lease_id", String(32)),
    Column("leased_until", Instant()),
    Column("begun_at", Instant()),  # a try was handed to the provider then, and its outcome is not known
    Column("give_up_at", Instant()),  # the bound of age, set by the first try
    Column("forgiven_attempts", Integer(), nullable=False, server_default=text("0")),  # those before the last redrive
    Column("created_at", Instant(), nullable=False),
    Column("finished_at", Instant()),
    Column("due_at", Instant()),  # when the plan wants it said; tries and waits do not move it; a notice has none
    Column("carrier_id", ROW_ID),  # the delivery that it is told together with, and that alone is claimed; no reference
    UniqueConstraint("notification_id", "destination", "recipient", "purpose"),
    UniqueConstraint("notice_id", "destination", "recipient"),
    CheckConstraint("(notification_id IS NULL) <> (notice_id IS NULL)", name="subject"),
    CheckConstraint("status IN ('pending', 'leased', 'sent', 'unknown', 'dead', 'cancelled')", name="status"),
)
Index(
    "ix_deliveries_due",
    DELIVERIES.c.destination,
    DELIVERIES.c.next_attempt_at,
    sqlite_where=text("status IN ('pending', 'unknown') AND carrier_id IS NULL"),
    postgresql_where=text("status IN ('pending', 'unknown') AND carrier_id IS NULL"),
)
Index(
    "ix_deliveries_carrier",
    DELIVERIES.c.carrier_id,
    sqlite_where=text("carrier_id IS NOT NULL"),
    postgresql_where=text("carrier_id IS NOT NULL"),
)
Index(
    "ix_deliveries_leased",
    DELIVERIES.c.leased_until,
    sqlite_where=text("status = 'leased'"),
    postgresql_where=text("status = 'leased'"),
)
Index("ix_deliveries_status", DELIVERIES.c.status)

# One try of a delivery, with the observation it was based on. Append-only.
ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("delivery_id", ROW_ID, ForeignKey("deliveries.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer(), nullable=False),
    Column("started_at", Instant(), nullable=False),
    Column("duration_ms", Integer(), nullable=False),
    Column("outcome", String(WORD_CHARS), nullable=False),
    Column("reason", String(WORD_CHARS)),
    Column("observed_state", String(WORD_CHARS)),
    Column("observed_reason", String(WORD_CHARS)),
    Column("observed_at", Instant()),
    Column("provider_ref", Text()),
)
Index("ix_attempts_delivery", ATTEMPTS.c.delivery_id)

# Every decision about telling somebody, taken or not, in time order: the story that `--why` prints. Append-only.
DECISIONS = Table(
    "decisions",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("notification_id", ROW_ID, ForeignKey("notifications.id", ondelete="CASCADE"), nullable=False),
    Column("decided_at", Instant(), nullable=False),
    Column("verdict", String(WORD_CHARS), nullable=False),  # planned, postponed, cancelled, suppressed
    Column("reason", String(WORD_CHARS), nullable=False),
    Column("route", String(ID_CHARS)),
    Column("destination", String(ID_CHARS)),
    Column("recipient", String(ID_CHARS)),
    Column("purpose", String(WORD_CHARS)),
    Column("until", Instant()),
)
Index("ix_decisions_notification", DECISIONS.c.notification_id)

# The health of a destination: consecutive permanent failures break it, a success mends it.
DESTINATIONS = Table(
    "destinations",
    METADATA,
    Column("name", String(ID_CHARS), primary_key=True),
    Column("permanent_failures", Integer(), nullable=False, server_default=text("0")),
    Column("broken_at", Instant()),
    Column("broken_reason", String(WORD_CHARS)),
    Column("paused_at", Instant()),  # the dead-letter limit was reached; a redrive lifts it
    Column("next_send_at", Instant()),  # the throttle: nothing goes before then
    Column("storm_since_at", Instant()),  # the minute in which openings are counted, where a route limits them
    Column("storm_openings", Integer()),
)

# One bounded pass over a source, or over the references that it did not show.
SWEEPS = Table(
    "sweeps",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("namespace", String(NAMESPACE_CHARS), nullable=False),
    Column("mode", String(WORD_CHARS), nullable=False),  # full, head
    Column("started_at", Instant(), nullable=False),
    Column("finished_at", Instant(), nullable=False),
    Column("pages", Integer(), nullable=False),
    Column("rows_seen", Integer(), nullable=False),
    Column("rows_changed", Integer(), nullable=False),
    Column("verified", Integer(), nullable=False),
    Column("is_complete", Boolean(), nullable=False),
    Column("problems", Text(), nullable=False),  # Incomplete words, joined by a comma
)
Index("ix_sweeps_namespace", SWEEPS.c.namespace, SWEEPS.c.id)

# A request that its session asked not to be told about: counted, never enrolled.
WITHHELD = Table(
    "withheld",
    METADATA,
    Column("namespace", String(NAMESPACE_CHARS), primary_key=True),
    Column("attention_id", String(ID_CHARS), primary_key=True),
    Column("session_id", String(ID_CHARS), nullable=False),
    Column("seen_at", Instant(), nullable=False),
)

# A parent that waits on a child which is not enrolled: navigation for an operator, no notification of its own. The
# page or view that shows it puts it here; a complete pass, or a whole view of its session, without it takes it out.
DELEGATIONS = Table(
    "delegations",
    METADATA,
    Column("namespace", String(NAMESPACE_CHARS), primary_key=True),
    Column("session_id", String(ID_CHARS), primary_key=True),
    Column("child_session_id", String(ID_CHARS), primary_key=True),
    Column("seen_at", Instant(), nullable=False),  # last
)

# The right to do a bounded piece of work alone, until a time.
LEASES = Table(
    "leases",
    METADATA,
    Column("name", String(ID_CHARS), primary_key=True),
    Column("lease_id", String(32), nullable=False),
    Column("leased_until", Instant(), nullable=False),
)

# What a person did through a door of ours: append-only.
AUDIT = Table(
    "audit",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("done_at", Instant(), nullable=False),
    Column("actor", String(ID_CHARS), nullable=False),
    Column("action", String(WORD_CHARS), nullable=False),
    Column("subject", String(ID_CHARS), nullable=False),
    Column("detail", Text(), nullable=False),
)
