"""Create the way in: the inbox, its dead letters, and the incidents of the stream.

phase: before the code
lock: none (new tables)
on 10 million rows: not applicable
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# As the columns are on the day of this migration; what the code later calls by these names may differ.
ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
INSTANT = sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def upgrade() -> None:
    """Create the tables, those that others refer to first."""
    create_inbox()
    create_inbox_dead()
    create_stream_incidents()


def create_inbox() -> None:
    """Create the table and its indexes."""
    op.create_table(
        "inbox",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("session_id", sa.String(512), nullable=False),
        sa.Column("event_id", sa.String(512), nullable=False),
        sa.Column("event_type", sa.String(100), nullable=False),
        sa.Column("occurred_at", INSTANT, nullable=False),
        sa.Column("received_at", INSTANT, nullable=False),
        sa.Column("processed_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_inbox"),
        sa.UniqueConstraint("namespace", "session_id", "event_id", name="uq_inbox_namespace_session_id_event_id"),
    )
    op.create_index(
        "ix_inbox_unprocessed",
        "inbox",
        ["namespace", "session_id"],
        sqlite_where=sa.text("processed_at IS NULL"),
        postgresql_where=sa.text("processed_at IS NULL"),
    )
    op.create_index("ix_inbox_processed_at", "inbox", ["processed_at"])


def create_inbox_dead() -> None:
    """Create the table."""
    op.create_table(
        "inbox_dead",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("stream_id", sa.String(64), nullable=False),
        sa.Column("reason", sa.String(100), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.Column("raw_bytes", ROW_ID, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("received_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_inbox_dead"),
        sa.UniqueConstraint("stream_id", "digest", name="uq_inbox_dead_stream_id_digest"),
    )


def create_stream_incidents() -> None:
    """Create the table."""
    op.create_table(
        "stream_incidents",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("occurred_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_stream_incidents"),
    )
