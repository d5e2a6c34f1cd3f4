"""The tables of the way in: hints received, entries that could not be read, and gaps of the stream."""

from sqlalchemy import Column, Index, LargeBinary, String, Table, Text, UniqueConstraint, text

from config.metadata import METADATA, ROW_ID, Instant

# A hint, durably received. The consumer (or the direct sink) puts it here; refresh sets `processed_at` after
# a complete read of the session; retention deletes processed rows after their keep time.
INBOX = Table(
    "inbox",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("namespace", String(200), nullable=False),
    Column("session_id", String(512), nullable=False),
    Column("event_id", String(512), nullable=False),
    Column("event_type", String(100), nullable=False),
    Column("occurred_at", Instant(), nullable=False),
    Column("received_at", Instant(), nullable=False),
    Column("processed_at", Instant()),
    UniqueConstraint("namespace", "session_id", "event_id"),
)
Index(
    "ix_inbox_unprocessed",
    INBOX.c.namespace,
    INBOX.c.session_id,
    sqlite_where=text("processed_at IS NULL"),
    postgresql_where=text("processed_at IS NULL"),
)
Index("ix_inbox_processed_at", INBOX.c.processed_at)

# A stream entry that is not a hint: kept as it came, bounded, until a person looks.
INBOX_DEAD = Table(
    "inbox_dead",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("stream_id", String(64), nullable=False),
    Column("reason", String(100), nullable=False),
    Column("raw", LargeBinary(), nullable=False),  # the entry's fields, cut at `MAX_RAW_BYTES`
    Column("raw_bytes", ROW_ID, nullable=False),  # how long it was before the cut
    Column("digest", String(64), nullable=False),  # of the uncut fields: the same entry twice is one row
    Column("received_at", Instant(), nullable=False),
    UniqueConstraint("stream_id", "digest"),
)

# Something the stream lost or a gap it showed (group gone, entries trimmed away): recorded, answered by a sweep.
STREAM_INCIDENTS = Table(
    "stream_incidents",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("kind", String(40), nullable=False),
    Column("detail", Text(), nullable=False),
    Column("occurred_at", Instant(), nullable=False),
)
