"""Create what is true: namespaces, notifications and their history, sweeps, and what is not enrolled.

phase: before the code
lock: none (new tables)
on 10 million rows: not applicable
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
INSTANT = sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def upgrade() -> None:
    """Create the tables, those that others refer to first."""
    create_namespaces()
    create_notifications()
    create_notification_history()
    create_withheld()
    create_delegations()
    create_sweeps()


def create_namespaces() -> None:
    """Create the table."""
    op.create_table(
        "namespaces",
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("source_type", sa.String(40), nullable=False),
        sa.Column("store_identity", sa.String(512)),
        sa.Column("first_seen_at", INSTANT, nullable=False),
        sa.Column("enrolled_after", INSTANT),
        sa.Column("sweep_due_at", INSTANT, nullable=False),
        sa.Column("head_due_at", INSTANT, nullable=False),
        sa.Column("scan_cursor", sa.Text()),
        sa.Column("scan_started_at", INSTANT),
        sa.Column("scan_problems", sa.Text(), nullable=False, server_default=""),
        sa.Column("complete_since", INSTANT),
        sa.Column("covered_since", INSTANT),
        sa.Column("verify_after", ROW_ID, nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("namespace", name="pk_namespaces"),
    )


def create_notifications() -> None:
    """Create the table and its indexes."""
    op.create_table(
        "notifications",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("attention_id", sa.String(512), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("session_id", sa.String(2048), nullable=False),
        sa.Column("session_instance_id", sa.String(512), nullable=False),
        sa.Column("action_id", sa.String(4096), nullable=False),
        sa.Column("round_id", sa.String(512)),
        sa.Column("tool_call_id", sa.String(512)),
        sa.Column("source_sequence", ROW_ID),
        sa.Column("agent_name", sa.String(512)),
        sa.Column("requester", sa.String(512)),
        sa.Column("environment_name", sa.String(512)),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("public_session_id", sa.String(512)),
        sa.Column("paused_at", INSTANT),
        sa.Column("state", sa.String(40), nullable=False),
        sa.Column("reason", sa.String(40), nullable=False),
        sa.Column("observed_at", INSTANT, nullable=False),
        sa.Column("first_seen_at", INSTANT, nullable=False),
        sa.Column("state_changed_at", INSTANT, nullable=False),
        sa.Column("verify_due_at", INSTANT, nullable=False),
        sa.Column("verify_failures", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("dismissed_at", INSTANT),
        sa.Column("dismissed_because", sa.Text()),
        sa.Column("acknowledged_until", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_notifications"),
        sa.UniqueConstraint("namespace", "attention_id", name="uq_notifications_namespace_attention_id"),
        sa.CheckConstraint(
            "state IN ('active', 'unavailable', 'resolved', 'cancelled', 'superseded', 'expired')",
            name="ck_notifications_state",
        ),
    )
    op.create_index(
        "ix_notifications_open",
        "notifications",
        ["namespace", "id"],
        sqlite_where=sa.text("state IN ('active', 'unavailable')"),
        postgresql_where=sa.text("state IN ('active', 'unavailable')"),
    )
    op.create_index("ix_notifications_session", "notifications", ["namespace", "session_id"])


def create_notification_history() -> None:
    """Create the table and its index."""
    op.create_table(
        "notification_history",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("notification_id", ROW_ID, nullable=False),
        sa.Column("from_state", sa.String(40)),
        sa.Column("to_state", sa.String(40), nullable=False),
        sa.Column("reason", sa.String(40), nullable=False),
        sa.Column("door", sa.String(40), nullable=False),
        sa.Column("observed_at", INSTANT, nullable=False),
        sa.Column("recorded_at", INSTANT, nullable=False),
        sa.Column("is_conflict", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.PrimaryKeyConstraint("id", name="pk_notification_history"),
        sa.ForeignKeyConstraint(
            ["notification_id"],
            ["notifications.id"],
            ondelete="CASCADE",
            name="fk_notification_history_notification_id_notifications",
        ),
    )
    op.create_index("ix_notification_history_notification", "notification_history", ["notification_id"])


def create_withheld() -> None:
    """Create the table."""
    op.create_table(
        "withheld",
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("attention_id", sa.String(512), nullable=False),
        sa.Column("session_id", sa.String(512), nullable=False),
        sa.Column("seen_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "attention_id", name="pk_withheld"),
    )


def create_delegations() -> None:
    """Create the table."""
    op.create_table(
        "delegations",
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("session_id", sa.String(512), nullable=False),
        sa.Column("child_session_id", sa.String(512), nullable=False),
        sa.Column("seen_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "session_id", "child_session_id", name="pk_delegations"),
    )


def create_sweeps() -> None:
    """Create the table and its index."""
    op.create_table(
        "sweeps",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("mode", sa.String(40), nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("finished_at", INSTANT, nullable=False),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("rows_seen", sa.Integer(), nullable=False),
        sa.Column("rows_changed", sa.Integer(), nullable=False),
        sa.Column("verified", sa.Integer(), nullable=False),
        sa.Column("is_complete", sa.Boolean(), nullable=False),
        sa.Column("problems", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sweeps"),
    )
    op.create_index("ix_sweeps_namespace", "sweeps", ["namespace", "id"])
