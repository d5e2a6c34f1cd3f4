"""Stream entries that are not hints: kept as they came, bounded, until a person looks."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from config.database import READ_ONLY
from sinks.tables import INBOX_DEAD

MAX_RAW_BYTES = 64 * 1024
REFUSED_BY_DATABASE = "refused_by_database"


@dataclass(frozen=True, slots=True)
class DeadEntry:
    """An entry to keep; `raw` is its names and values as netstrings, cut at `MAX_RAW_BYTES`."""

    stream_id: str
    reason: str
    raw: bytes
    raw_bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A kept entry, as `handbell inbox dead` shows it; `text` has every byte that is no text escaped."""

    stream_id: str
    reason: str
    text: str
    raw_bytes: int
    received_at: datetime


def dead_entry(stream_id: bytes, fields: Mapping[bytes, bytes], reason: str) -> DeadEntry:
    """Make the dead letter of an entry; the same entry makes the same one."""
    raw = b"".join(b"%d:%b," % (len(part), part) for item in fields.items() for part in item)
    return DeadEntry(
        stream_id=stream_id.decode("ascii", "replace")[:64],
        reason=reason,
        raw=raw[:MAX_RAW_BYTES],
        raw_bytes=len(raw),
        digest=hashlib.sha256(raw).hexdigest(),
    )


async def read_dead_letters(engine: AsyncEngine, *, limit: int = 1000) -> Sequence[DeadLetter]:
    """Return the newest dead letters, newest first."""
    columns = INBOX_DEAD.c
    query = select(columns.stream_id, columns.reason, columns.raw, columns.raw_bytes, columns.received_at)
    async with engine.connect() as connection:
        await connection.execution_options(**READ_ONLY)
        rows = (await connection.execute(query.order_by(columns.id.desc()).limit(limit))).all()
    return [DeadLetter(row.stream_id, row.reason, _printable(row.raw), row.raw_bytes, row.received_at) for row in rows]


def _printable(raw: bytes) -> str:
    text = raw.decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
