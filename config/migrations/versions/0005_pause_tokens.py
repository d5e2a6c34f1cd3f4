"""Create what pause tokens and answers need: issuances, redemptions, answers, the horizon, and paused runs' records.

phase: before the code
lock: none (new tables)
on 10 million rows: not applicable
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
INSTANT = sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def upgrade() -> None:
    """Create the tables."""
    create_issuance()
    create_consumption()
    create_answers()
    create_horizon()
    create_cross_scope_audit()
    create_records()
    create_captures()


def create_issuance() -> None:
    """Create the table of issued tokens and its indexes."""
    op.create_table(
        "answer_token_issuance",
        sa.Column("jti", sa.String(64), nullable=False),
        sa.Column("namespace", sa.String(200), nullable=False, server_default=""),
        sa.Column("attention_id", sa.String(512), nullable=False, server_default=""),
        sa.Column("source", sa.String(40), nullable=False, server_default=""),
        sa.Column("recipient_ref", sa.String(512), nullable=False, server_default=""),
        sa.Column("channel", sa.String(200), nullable=False, server_default=""),
        sa.Column("scope_hash", sa.String(64), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("request_hash", sa.String(64), nullable=False),
        sa.Column("issued_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("legacy_pinned", sa.Boolean(), nullable=False),
        sa.Column("vector_hash", sa.String(512), nullable=False, server_default=""),
        sa.Column("key_id", sa.String(200), nullable=False, server_default=""),
        sa.Column("revoked_at", sa.Double()),
        sa.PrimaryKeyConstraint("jti", name="pk_answer_token_issuance"),
        sa.CheckConstraint("expires_at > issued_at", name=op.f("ck_answer_token_issuance_lifetime")),
    )
    op.create_index("ix_answer_token_issuance_expiry", "answer_token_issuance", ["expires_at", "jti"])
    op.create_index("ix_answer_token_issuance_issued", "answer_token_issuance", ["issued_at", "jti"])
    op.create_index("ix_answer_token_issuance_attention", "answer_token_issuance", ["namespace", "attention_id"])
    op.create_index(
        "ix_answer_token_issuance_legacy",
        "answer_token_issuance",
        ["expires_at"],
        sqlite_where=sa.text("legacy_pinned = 1"),
        postgresql_where=sa.text("legacy_pinned"),
    )


def create_consumption() -> None:
    """Create the table of redemptions."""
    op.create_table(
        "answer_token_consumption",
        sa.Column("jti", sa.String(64), nullable=False),
        sa.Column("scope_hash", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("consumed_at", sa.Double(), nullable=False),
        sa.Column("claim_id", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("jti", name="pk_answer_token_consumption"),
        sa.ForeignKeyConstraint(
            ["jti"],
            ["answer_token_issuance.jti"],
            name="fk_answer_token_consumption_jti_answer_token_issuance",
            ondelete="CASCADE",
        ),
    )


def create_answers() -> None:
    """Create the table of answers and its index."""
    op.create_table(
        "attention_answer",
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("attention_id", sa.String(512), nullable=False),
        sa.Column("jti", sa.String(64), nullable=False),
        sa.Column("principal", sa.String(512), nullable=False),
        sa.Column("request_digest", sa.String(64), nullable=False),
        sa.Column("answer_body", sa.LargeBinary(), nullable=False),
        sa.Column("accepted_at", sa.Double(), nullable=False),
        sa.Column("state", sa.String(40), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("next_attempt_at", sa.Double()),
        sa.Column("last_code", sa.String(200)),
        sa.PrimaryKeyConstraint("namespace", "attention_id", name="pk_attention_answer"),
        sa.UniqueConstraint("jti", name="uq_attention_answer_jti"),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_attention_answer_attempts")),
    )
    op.create_index("ix_attention_answer_due", "attention_answer", ["state", "next_attempt_at"])


def create_horizon() -> None:
    """Create the table of the one retirement horizon."""
    op.create_table(
        "answer_token_horizon",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_answer_token_horizon"),
        sa.CheckConstraint("id = 1", name=op.f("ck_answer_token_horizon_only_one")),
    )


def create_cross_scope_audit() -> None:
    """Create the table of attempts from another scope, and its index."""
    op.create_table(
        "cross_scope_audit",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("jti", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("interrupt_id", sa.Text(), nullable=False),
        sa.Column("expected_scope_hash", sa.String(64), nullable=False),
        sa.Column("presented_scope_hash", sa.String(64), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cross_scope_audit"),
    )
    op.create_index("ix_cross_scope_audit_jti", "cross_scope_audit", ["jti"])


def create_records() -> None:
    """Create the tables of paused runs' records and of their threads."""
    op.create_table(
        "pause_record",
        sa.Column("place", sa.String(64), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("written_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("place", name="pk_pause_record"),
    )
    op.create_table(
        "pause_thread",
        sa.Column("thread", sa.String(64), nullable=False),
        sa.Column("checkpoint_id", sa.Text(), nullable=False),
        sa.Column("moved_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("thread", name="pk_pause_thread"),
    )


def create_captures() -> None:
    """Create the table of captured pauses."""
    op.create_table(
        "pause_capture",
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("attention_id", sa.String(512), nullable=False),
        sa.Column("jti", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("root_run_id", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("checkpoint_id", sa.Text(), nullable=False),
        sa.Column("is_resumable", sa.Boolean(), nullable=False),
        sa.Column("sealed_envelope", sa.LargeBinary()),
        sa.Column("captured_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "attention_id", name="pk_pause_capture"),
    )
