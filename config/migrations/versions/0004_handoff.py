"""Create what the handoff keeps: where each sender's scan stands, and what its repair passes reported.

phase: before the code
lock: none (new tables)
on 10 million rows: not applicable
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
INSTANT = sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def upgrade() -> None:
    """Create the tables."""
    create_handoff_scans()
    create_handoff_reports()


def create_handoff_scans() -> None:
    """Create the table."""
    op.create_table(
        "handoff_scans",
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("scan_cursor", sa.Text()),
        sa.Column("changed_at", INSTANT, nullable=False),
        sa.Column("completed_at", INSTANT),
        sa.PrimaryKeyConstraint("namespace", name="pk_handoff_scans"),
    )


def create_handoff_reports() -> None:
    """Create the table and its index."""
    op.create_table(
        "handoff_reports",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("received_at", INSTANT, nullable=False),
        sa.Column("runtime_version", sa.String(100), nullable=False),
        sa.Column("pages", ROW_ID, nullable=False),
        sa.Column("observed", ROW_ID, nullable=False),
        sa.Column("scan_complete", sa.Boolean(), nullable=False),
        sa.Column("verify_complete", sa.Boolean(), nullable=False),
        sa.Column("issues", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_handoff_reports"),
    )
    op.create_index("ix_handoff_reports_namespace", "handoff_reports", ["namespace", "id"])
