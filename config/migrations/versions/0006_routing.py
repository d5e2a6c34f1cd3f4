"""Create silences and the routing's row; keep when each delivery is wanted, and with which it is told together.

phase: before the code
lock: deliveries, for writes, while its index of what is due is built again
on 10 million rows: seconds (the index holds only what waits, but every row is looked at)
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
INSTANT = sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def upgrade() -> None:
    """Create the tables and add the column."""
    op.create_table(
        "silences",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("matcher", sa.JSON(), nullable=False),
        sa.Column("because", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(512), nullable=False),
        sa.Column("begins_at", INSTANT, nullable=False),
        sa.Column("ends_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_silences"),
    )
    op.create_index("ix_silences_ends_at", "silences", ["ends_at"])
    op.create_table(
        "routing",
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("changed_at", INSTANT, nullable=False),
        sa.Column("resume_after", ROW_ID),
        sa.PrimaryKeyConstraint("name", name="pk_routing"),
    )
    op.add_column("deliveries", sa.Column("due_at", INSTANT))
    op.add_column("deliveries", sa.Column("carrier_id", ROW_ID))
    op.add_column("destinations", sa.Column("storm_since_at", INSTANT))
    op.add_column("destinations", sa.Column("storm_openings", sa.Integer()))
    op.drop_index("ix_deliveries_due", "deliveries")
    op.create_index(
        "ix_deliveries_due",
        "deliveries",
        ["destination", "next_attempt_at"],
        sqlite_where=sa.text("status IN ('pending', 'unknown') AND carrier_id IS NULL"),
        postgresql_where=sa.text("status IN ('pending', 'unknown') AND carrier_id IS NULL"),
    )
    op.create_index(
        "ix_deliveries_carrier",
        "deliveries",
        ["carrier_id"],
        sqlite_where=sa.text("carrier_id IS NOT NULL"),
        postgresql_where=sa.text("carrier_id IS NOT NULL"),
    )
