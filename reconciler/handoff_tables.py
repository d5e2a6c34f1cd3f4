"""The tables of the handoff: where each sender's scan stands, and what its repair passes reported."""

from sqlalchemy import Boolean, Column, Index, String, Table, Text

from config.metadata import METADATA, ROW_ID, Instant
from reconciler.tables import NAMESPACE_CHARS

VERSION_CHARS = 100

# Where the scan of a namespace's sender stands; its next pass resumes there, in whichever process it runs. An accepted
# batch that names a scan puts and changes it, after the batch itself is committed; nothing deletes it.
HANDOFF_SCANS = Table(
    "handoff_scans",
    METADATA,
    Column("namespace", String(NAMESPACE_CHARS), primary_key=True),
    Column("scan_cursor", Text()),  # the runtime's own, opaque; NULL where the next pass begins at the top
    Column("changed_at", Instant(), nullable=False),
    Column("completed_at", Instant()),  # when a scan last ended clean
)

# What a repair pass of a sender did. Append-only; the newest `KEPT_REPORTS` of a namespace are kept.
HANDOFF_REPORTS = Table(
    "handoff_reports",
    METADATA,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("namespace", String(NAMESPACE_CHARS), nullable=False),
    Column("received_at", Instant(), nullable=False),
    Column("runtime_version", String(VERSION_CHARS), nullable=False),
    Column("pages", ROW_ID, nullable=False),
    Column("observed", ROW_ID, nullable=False),
    Column("scan_complete", Boolean(), nullable=False),
    Column("verify_complete", Boolean(), nullable=False),
    Column("issues", Text(), nullable=False),  # the sender's fixed words, joined by a comma
)
Index("ix_handoff_reports_namespace", HANDOFF_REPORTS.c.namespace, HANDOFF_REPORTS.c.id)
