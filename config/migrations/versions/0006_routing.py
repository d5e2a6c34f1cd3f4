"""Create silences and the routing's row; keep when the plan wants each delivery said.

phase: before the code
lock: deliveries, briefly (a column without a default)
on 10 million rows: milliseconds
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
