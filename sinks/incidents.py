"""What the stream lost or a gap it showed, written down; a sweep answers it."""

from enum import StrEnum

from sqlalchemy import func, insert, select
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock
from config.database import READ_ONLY
from sinks.tables import STREAM_INCIDENTS


class Incident(StrEnum):
    """What happened to the stream."""

    GROUP_LOST = "group_lost"  # the stream or its group went while the consumer ran
    GROUP_MISSING = "group_missing"  # it was not there at the start, although hints had been received before
    ENTRIES_TRIMMED = "entries_trimmed"  # pending entries were removed by somebody before they were read


class Incidents:
    """Records and counts incidents."""

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    async def record(self, kind: Incident, detail: str) -> None:
        """Write one down; `detail` is for a person and never an entry's content."""
        row = {"kind": kind.value, "detail": detail, "occurred_at": self._clock.now()}
        async with self._engine.begin() as connection:
            await connection.execute(insert(STREAM_INCIDENTS), [row])

    async def counts(self) -> dict[Incident, int]:
        """Return how many of each kind were recorded."""
        query = select(STREAM_INCIDENTS.c.kind, func.count()).group_by(STREAM_INCIDENTS.c.kind)
        async with self._engine.connect() as connection:
            await connection.execution_options(**READ_ONLY)
            return {Incident(row[0]): row[1] for row in await connection.execute(query)}
