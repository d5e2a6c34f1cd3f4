"""The tables of pause tokens: issued, redeemed, retired, answered, and the records of paused runs.

No row holds a token: only its id. Times of tokens are epoch seconds, as the capability and its signed claims have
them; a signed expiry is compared with exactly itself. Ids of sessions, runs and calls come from runtimes and are text
without a bound of our own.
"""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    text,
)

from config.metadata import METADATA, ROW_ID, Instant
from reconciler.tables import ID_CHARS, NAMESPACE_CHARS, WORD_CHARS

JTI_CHARS = 64
HASH_CHARS = 64
NAME_CHARS = 200
CLAIM_ID_CHARS = 32

# A token, before it leaves. The mint puts it here; an operator may set `revoked_at`; retention deletes it some time
# after its expiry. The columns from `namespace` to `channel` are empty for a runtime's own tokens: only Handbell's
# answer tokens belong to a request and a recipient.
ISSUANCE = Table(
    "answer_token_issuance",
    METADATA,
    Column("jti", String(JTI_CHARS), primary_key=True),
    Column("namespace", String(NAMESPACE_CHARS), nullable=False, server_default=""),
    Column("attention_id", String(ID_CHARS), nullable=False, server_default=""),
    Column("source", String(WORD_CHARS), nullable=False, server_default=""),
    Column("recipient_ref", String(ID_CHARS), nullable=False, server_default=""),
    Column("channel", String(NAME_CHARS), nullable=False, server_default=""),
    Column("scope_hash", String(HASH_CHARS), nullable=False),
    Column("session_id", Text(), nullable=False),
    Column("run_id", Text(), nullable=False),
    Column("call_id", Text(), nullable=False),
    Column("name", String(NAME_CHARS), nullable=False),
    Column("request_hash", String(HASH_CHARS), nullable=False),
    Column("issued_at", Double(), nullable=False),
    Column("expires_at", Double(), nullable=False),
    Column("legacy_pinned", Boolean(), nullable=False),
    Column("vector_hash", String(ID_CHARS), nullable=False, server_default=""),
    Column("key_id", String(NAME_CHARS), nullable=False, server_default=""),
    Column("revoked_at", Double()),
    CheckConstraint("expires_at > issued_at", name="lifetime"),
)
Index("ix_answer_token_issuance_expiry", ISSUANCE.c.expires_at, ISSUANCE.c.jti)
Index("ix_answer_token_issuance_issued", ISSUANCE.c.issued_at, ISSUANCE.c.jti)
Index("ix_answer_token_issuance_attention", ISSUANCE.c.namespace, ISSUANCE.c.attention_id)
Index(
    "ix_answer_token_issuance_legacy",
    ISSUANCE.c.expires_at,
    sqlite_where=text("legacy_pinned = 1"),
    postgresql_where=text("legacy_pinned"),
)

# A redemption, by whoever won it. The claim puts it here; it goes with its issuance. `claim_id` is the claimer's own
# mark: after a commit whose outcome was lost it says whose the redemption is.
CONSUMPTION = Table(
    "answer_token_consumption",
    METADATA,
    Column("jti", String(JTI_CHARS), ForeignKey(ISSUANCE.c.jti, ondelete="CASCADE"), primary_key=True),
    Column("scope_hash", String(HASH_CHARS), nullable=False),
    Column("name", String(NAME_CHARS), nullable=False),
    Column("consumed_at", Double(), nullable=False),
    Column("claim_id", String(CLAIM_ID_CHARS), nullable=False),
)

# The one answer of a request, and what is still to be done with it. The redemption puts it here in its own
# transaction, so that a crash right after it loses nothing; the dispatch moves `state` on. `answer_body` is what will
# be sent, byte for byte at every try, and is sealed by whoever writes it.
ANSWERS = Table(
    "attention_answer",
    METADATA,
    Column("namespace", String(NAMESPACE_CHARS), nullable=False),
    Column("attention_id", String(ID_CHARS), nullable=False),
    Column("jti", String(JTI_CHARS), nullable=False, unique=True),
    Column("principal", String(ID_CHARS), nullable=False),
    Column("request_digest", String(HASH_CHARS), nullable=False),
    Column("answer_body", LargeBinary(), nullable=False),
    Column("accepted_at", Double(), nullable=False),
    Column("state", String(WORD_CHARS), nullable=False),
    Column("attempts", Integer(), nullable=False, server_default=text("0")),
    Column("next_attempt_at", Double()),
    Column("last_code", String(NAME_CHARS)),
    PrimaryKeyConstraint("namespace", "attention_id"),
    CheckConstraint("attempts >= 0", name="attempts"),
)
Index("ix_attention_answer_due", ANSWERS.c.state, ANSWERS.c.next_attempt_at)

# From when on tokens of the retired format are not issued. An operator puts the one row here; nothing changes it.
HORIZON = Table(
    "answer_token_horizon",
    METADATA,
    Column("id", Integer(), primary_key=True, autoincrement=False),
    Column("at", Double(), nullable=False),
    Column("reason", Text(), nullable=False),
    Column("recorded_at", Double(), nullable=False),
    CheckConstraint("id = 1", name="only_one"),
)

# An attempt to redeem a token from another scope than its own, which its interaction allows. Append-only.
CROSS_SCOPE_AUDIT = Table(
    "cross_scope_audit",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("jti", String(JTI_CHARS), nullable=False),
    Column("name", String(NAME_CHARS), nullable=False),
    Column("interrupt_id", Text(), nullable=False),
    Column("expected_scope_hash", String(HASH_CHARS), nullable=False),
    Column("presented_scope_hash", String(HASH_CHARS), nullable=False),
    Column("at", Double(), nullable=False),
)
Index("ix_cross_scope_audit_jti", CROSS_SCOPE_AUDIT.c.jti)

# The request or the turn of a paused run. The pause puts it here, sealed with the place it belongs to; whoever keeps
# the run deletes it. `place` is the hash of thread, checkpoint and key: any length fits the index.
PAUSE_RECORDS = Table(
    "pause_record",
    METADATA,
    Column("place", String(HASH_CHARS), primary_key=True),
    Column("sealed", LargeBinary(), nullable=False),
    Column("written_at", Double(), nullable=False),
)

# Which checkpoint a thread stands at. The runtime puts it here and moves it on.
PAUSE_THREADS = Table(
    "pause_thread",
    METADATA,
    Column("thread", String(HASH_CHARS), primary_key=True),
    Column("checkpoint_id", Text(), nullable=False),
    Column("moved_at", Double(), nullable=False),
)

# What an agent's process said of a pause of its own: where it belongs, and its token for whoever dispatches an answer.
# The capture puts it here before the agent shows the pause; the transaction that settles the request empties
# `sealed_envelope`; retention deletes the row. `is_resumable` is never raised afterwards.
CAPTURES = Table(
    "pause_capture",
    METADATA,
    Column("namespace", String(NAMESPACE_CHARS), nullable=False),
    Column("attention_id", String(ID_CHARS), nullable=False),
    Column("jti", String(JTI_CHARS), nullable=False),
    Column("name", String(NAME_CHARS), nullable=False),
    Column("session_id", Text(), nullable=False),
    Column("run_id", Text(), nullable=False),
    Column("root_run_id", Text(), nullable=False),
    Column("call_id", Text(), nullable=False),
    Column("thread_id", Text(), nullable=False),
    Column("checkpoint_id", Text(), nullable=False),
    Column("is_resumable", Boolean(), nullable=False),
    Column("sealed_envelope", LargeBinary()),
    Column("captured_at", Instant(), nullable=False),
    PrimaryKeyConstraint("namespace", "attention_id"),
)

PAUSE_TABLES = (ISSUANCE, CONSUMPTION, ANSWERS, HORIZON, CROSS_SCOPE_AUDIT, PAUSE_RECORDS, PAUSE_THREADS, CAPTURES)
