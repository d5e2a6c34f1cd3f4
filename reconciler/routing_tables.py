"""The tables of what people and new routes ask of the plan."""

from sqlalchemy import JSON, Column, Index, String, Table, Text

from config.metadata import METADATA, ROW_ID, Instant
from reconciler.tables import ID_CHARS, WORD_CHARS

# Requests that a person wants to hear nothing of until `ends_at`. `handbell silence` puts it here and moves the end;
# retention deletes it with the audit.
SILENCES = Table(
    "silences",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("matcher", JSON(), nullable=False),
    Column("because", Text(), nullable=False),
    Column("actor", String(ID_CHARS), nullable=False),
    Column("begins_at", Instant(), nullable=False),
    Column("ends_at", Instant(), nullable=False),
)
Index("ix_silences_ends_at", SILENCES.c.ends_at)

# One row: by which routes everything is planned, and how far a plan made anew for others has come.
ROUTING = Table(
    "routing",
    METADATA,
    Column("name", String(WORD_CHARS), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("changed_at", Instant(), nullable=False),
    Column("resume_after", ROW_ID),  # the last request that was planned anew; NULL where all are
)
