"""The inbox: hints durably received, each once. It stands between the stream and the refresh of a session."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.clock import Clock
from config.database import READ_ONLY
from config.statements import insert_ignoring
from sinks.dead_letters import DeadEntry
from sinks.emit.hint import Hint
from sinks.tables import INBOX, INBOX_DEAD

# How many rows one statement names by id: far below SQLite's 32,766 and PostgreSQL's 32,767 parameters.
_IDS_PER_STATEMENT = 1000
# How many rows of one answer are read at most; a session with more is refreshed again for the rest.
_MAX_ROWS = 5000


class HintKey(NamedTuple):
    """What a hint is unique on."""

    namespace: str
    session_id: str
    event_id: str


@dataclass(frozen=True, slots=True)
class Unprocessed:
    """A session with unprocessed hints; `ids` are the rows that were read, so that later ones stay unprocessed."""

    namespace: str
    session_id: str
    event_types: frozenset[str]
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NamespaceCounts:
    """How many hints of one namespace are there."""

    received: int
    unprocessed: int


@dataclass(frozen=True, slots=True)
class InboxCounts:
    """How many hints and dead letters are there."""

    received: int
    unprocessed: int
    dead: int
    namespaces: dict[str, NamespaceCounts]


class Inbox:
    """Receives hints, hands out what is unprocessed. Every method is one transaction and may be called again."""

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    async def insert(self, hints: Sequence[Hint], dead: Sequence[DeadEntry] = ()) -> frozenset[HintKey]:
        """Commit hints and dead letters together; return the keys that were not there before.

        A hint that is there already changes nothing. Rows go in sorted, so that two consumers with overlapping
        batches do not deadlock.
        """
        by_key = {HintKey(hint.namespace, hint.session_id, hint.event_id): hint for hint in reversed(hints)}
        now = self._clock.now()
        rows = [
            {
                **key._asdict(),
                "event_type": by_key[key].type,
                "occurred_at": by_key[key].occurred_at,
                "received_at": now,
            }
            for key in sorted(by_key)
        ]
        async with self._engine.begin() as connection:
            inserted = await self._insert_hints(connection, rows)
            if dead:
                dead_rows = [{**asdict(entry), "received_at": now} for entry in dead]
                await connection.execute(insert_ignoring(connection, INBOX_DEAD), dead_rows)
        return inserted

    async def unprocessed(
        self, namespaces: Sequence[str], *, limit: int, without: Sequence[tuple[str, str]] = ()
    ) -> Sequence[Unprocessed]:
        """Return up to `limit` sessions with unprocessed hints, the longest waiting first, but none of `without`."""
        columns, skipped = INBOX.c, set(without)
        waiting = (
            select(columns.namespace, columns.session_id)
            .where(columns.processed_at.is_(None), columns.namespace.in_(namespaces))
            .group_by(columns.namespace, columns.session_id)
            .order_by(func.min(columns.id))
            .limit(limit + len(skipped))
        )
        async with self._engine.connect() as connection:
            await connection.execution_options(**READ_ONLY)
            found = [(row.namespace, row.session_id) for row in await connection.execute(waiting)]
            keys = [key for key in found if key not in skipped][:limit]
            return await _read_sessions(connection, keys)

    async def mark_processed(self, items: Sequence[Unprocessed]) -> None:
        """Mark exactly the rows that were read as `items`; those that are marked already stay as they are."""
        ids = sorted(row_id for item in items for row_id in item.ids)
        if not ids:
            return
        async with self._engine.begin() as connection:
            for begin in range(0, len(ids), _IDS_PER_STATEMENT):
                some = ids[begin : begin + _IDS_PER_STATEMENT]
                await connection.execute(
                    update(INBOX)
                    .where(INBOX.c.id.in_(some), INBOX.c.processed_at.is_(None))
                    .values(processed_at=self._clock.now())
                )

    async def counts(self) -> InboxCounts:
        """Count what is there, for `status`; a namespace without a source is counted too."""
        columns = INBOX.c
        unprocessed = func.count().filter(columns.processed_at.is_(None))
        by_namespace = select(columns.namespace, func.count(), unprocessed).group_by(columns.namespace)
        async with self._engine.connect() as connection:
            await connection.execution_options(**READ_ONLY)
            rows = (await connection.execute(by_namespace.order_by(columns.namespace))).all()
            dead = (await connection.execute(select(func.count()).select_from(INBOX_DEAD))).scalar_one()
        namespaces = {row[0]: NamespaceCounts(row[1], row[2]) for row in rows}
        return InboxCounts(
            received=sum(counts.received for counts in namespaces.values()),
            unprocessed=sum(counts.unprocessed for counts in namespaces.values()),
            dead=dead,
            namespaces=namespaces,
        )

    async def is_empty(self) -> bool:
        """Say whether no hint was ever received (or none is kept any more)."""
        async with self._engine.connect() as connection:
            await connection.execution_options(**READ_ONLY)
            return (await connection.execute(select(INBOX.c.id).limit(1))).first() is None

    async def check_writable(self) -> None:
        """Begin a transaction that may write and ask for a write; raises what the database says where it refuses.

        No row matches, so nothing changes and nothing is flushed; a read-only or missing table is found all the same.
        """
        async with self._engine.begin() as connection:
            await connection.execute(update(INBOX).where(INBOX.c.id < 0).values(processed_at=self._clock.now()))

    async def _insert_hints(self, connection: AsyncConnection, rows: list[dict[str, object]]) -> frozenset[HintKey]:
        if not rows:
            return frozenset()
        statement = insert_ignoring(connection, INBOX).returning(
            INBOX.c.namespace, INBOX.c.session_id, INBOX.c.event_id
        )
        return frozenset(HintKey(*row) for row in await connection.execute(statement, rows))


async def _read_sessions(connection: AsyncConnection, keys: Sequence[tuple[str, str]]) -> Sequence[Unprocessed]:
    columns = INBOX.c
    by_namespace: dict[str, list[str]] = defaultdict(list)
    for namespace, session_id in keys:
        by_namespace[namespace].append(session_id)
    rows_of: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for namespace, session_ids in by_namespace.items():
        query = (
            select(columns.session_id, columns.id, columns.event_type)
            .where(columns.namespace == namespace, columns.session_id.in_(session_ids), columns.processed_at.is_(None))
            .order_by(columns.id)
            .limit(_MAX_ROWS)
        )
        for row in await connection.execute(query):
            rows_of[namespace, row.session_id].append((row.id, row.event_type))
    return [
        Unprocessed(
            namespace=key[0],
            session_id=key[1],
            event_types=frozenset(event_type for _, event_type in rows_of[key]),
            ids=tuple(row_id for row_id, _ in rows_of[key]),
        )
        for key in keys
        if rows_of[key]
    ]
