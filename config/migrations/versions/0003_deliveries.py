"""Create what people are told: notices, the outbox and its attempts, decisions, destinations, leases, the audit.

phase: before the code
lock: none (new tables)
on 10 million rows: not applicable
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
INSTANT = sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def upgrade() -> None:
    """Create the tables, those that others refer to first."""
    create_notices()
    create_deliveries()
    create_attempts()
    create_decisions()
    create_destinations()
    create_leases()
    create_audit()


def create_notices() -> None:
    """Create the table and its index."""
    op.create_table(
        "notices",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("subject", sa.String(512), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("opened_at", INSTANT, nullable=False),
        sa.Column("closed_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_notices"),
    )
    op.create_index(
        "uq_notices_open",
        "notices",
        ["kind", "subject"],
        unique=True,
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )


def create_deliveries() -> None:
    """Create the table and its indexes."""
    op.create_table(
        "deliveries",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("notification_id", ROW_ID),
        sa.Column("notice_id", ROW_ID),
        sa.Column("destination", sa.String(512), nullable=False),
        sa.Column("channel", sa.String(40), nullable=False),
        sa.Column("recipient", sa.String(512), nullable=False),
        sa.Column("purpose", sa.String(40), nullable=False),
        sa.Column("message_key", sa.String(32), nullable=False),
        sa.Column("route", sa.String(512), nullable=False),
        sa.Column("status", sa.String(40), nullable=False),
        sa.Column("reason", sa.String(40), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("provider_ref", sa.Text()),
        sa.Column("next_attempt_at", INSTANT, nullable=False),
        sa.Column("lease_id", sa.String(32)),
        sa.Column("leased_until", INSTANT),
        sa.Column("begun_at", INSTANT),
        sa.Column("give_up_at", INSTANT),
        sa.Column("forgiven_attempts", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("finished_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.UniqueConstraint(
            "notification_id",
            "destination",
            "recipient",
            "purpose",
            name="uq_deliveries_notification_id_destination_recipient_purpose",
        ),
        sa.UniqueConstraint(
            "notice_id", "destination", "recipient", name="uq_deliveries_notice_id_destination_recipient"
        ),
        sa.CheckConstraint("(notification_id IS NULL) <> (notice_id IS NULL)", name="ck_deliveries_subject"),
        sa.CheckConstraint(
            "status IN ('pending', 'leased', 'sent', 'unknown', 'dead', 'cancelled')", name="ck_deliveries_status"
        ),
        sa.ForeignKeyConstraint(
            ["notification_id"],
            ["notifications.id"],
            ondelete="CASCADE",
            name="fk_deliveries_notification_id_notifications",
        ),
        sa.ForeignKeyConstraint(
            ["notice_id"], ["notices.id"], ondelete="CASCADE", name="fk_deliveries_notice_id_notices"
        ),
    )
    op.create_index(
        "ix_deliveries_due",
        "deliveries",
        ["destination", "next_attempt_at"],
        sqlite_where=sa.text("status IN ('pending', 'unknown')"),
        postgresql_where=sa.text("status IN ('pending', 'unknown')"),
    )
    op.create_index(
        "ix_deliveries_leased",
        "deliveries",
        ["leased_until"],
        sqlite_where=sa.text("status = 'leased'"),
        postgresql_where=sa.text("status = 'leased'"),
    )
    op.create_index("ix_deliveries_status", "deliveries", ["status"])


def create_attempts() -> None:
    """Create the table and its index."""
    op.create_table(
        "attempts",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("delivery_id", ROW_ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(40), nullable=False),
        sa.Column("reason", sa.String(40)),
        sa.Column("observed_state", sa.String(40)),
        sa.Column("observed_reason", sa.String(40)),
        sa.Column("observed_at", INSTANT),
        sa.Column("provider_ref", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_attempts"),
        sa.ForeignKeyConstraint(
            ["delivery_id"], ["deliveries.id"], ondelete="CASCADE", name="fk_attempts_delivery_id_deliveries"
        ),
    )
    op.create_index("ix_attempts_delivery", "attempts", ["delivery_id"])


def create_decisions() -> None:
    """Create the table and its index."""
    op.create_table(
        "decisions",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("notification_id", ROW_ID, nullable=False),
        sa.Column("decided_at", INSTANT, nullable=False),
        sa.Column("verdict", sa.String(40), nullable=False),
        sa.Column("reason", sa.String(40), nullable=False),
        sa.Column("route", sa.String(512)),
        sa.Column("destination", sa.String(512)),
        sa.Column("recipient", sa.String(512)),
        sa.Column("purpose", sa.String(40)),
        sa.Column("until", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_decisions"),
        sa.ForeignKeyConstraint(
            ["notification_id"],
            ["notifications.id"],
            ondelete="CASCADE",
            name="fk_decisions_notification_id_notifications",
        ),
    )
    op.create_index("ix_decisions_notification", "decisions", ["notification_id"])


def create_destinations() -> None:
    """Create the table."""
    op.create_table(
        "destinations",
        sa.Column("name", sa.String(512), nullable=False),
        sa.Column("permanent_failures", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("broken_at", INSTANT),
        sa.Column("broken_reason", sa.String(40)),
        sa.Column("paused_at", INSTANT),
        sa.Column("next_send_at", INSTANT),
        sa.PrimaryKeyConstraint("name", name="pk_destinations"),
    )


def create_leases() -> None:
    """Create the table."""
    op.create_table(
        "leases",
        sa.Column("name", sa.String(512), nullable=False),
        sa.Column("lease_id", sa.String(32), nullable=False),
        sa.Column("leased_until", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )


def create_audit() -> None:
    """Create the table."""
    op.create_table(
        "audit",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("done_at", INSTANT, nullable=False),
        sa.Column("actor", sa.String(512), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("subject", sa.String(512), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
