"""The records of paused runs on the same database as their tokens: durable, and never in clear."""

import hashlib
import json
from typing import Protocol

from sqlalchemy import Table, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.clock import Clock
from config.database import READ_ONLY
from reconciler.pause_store.failures import try_again
from reconciler.pause_store.tables import PAUSE_RECORDS, PAUSE_THREADS
from reconciler.pauses import PayloadBindingError


class Sealer(Protocol):
    """Encrypts what must not be read in the database: a question, a turn, an answer."""

    def seal(self, clear: bytes) -> bytes:
        """Return it encrypted and authenticated."""
        ...

    def unseal(self, sealed: bytes) -> bytes:
        """Return it in clear; raises ValueError where it was not sealed with a key of ours."""
        ...


class SqlCheckpoints:
    """A checkpoint port (`CheckpointCommandPort`) that outlives the process.

    Each record is sealed together with its place, so that a row moved to another place is refused. Raises
    PauseStoreUnavailableError where the database cannot answer, PayloadBindingError for a record that was not
    sealed for its place.
    """

    durable = True

    def __init__(self, engine: AsyncEngine, clock: Clock, sealer: Sealer) -> None:
        self._engine = engine
        self._clock = clock
        self._sealer = sealer

    async def read_metadata(self, *, thread_id: str, checkpoint_id: str, key: str) -> str | None:
        """Return the recorded text, or None where there is none."""
        place = _hash(thread_id, checkpoint_id, key)
        async with try_again(), self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            sealed: bytes | None = await connection.scalar(
                select(PAUSE_RECORDS.c.sealed).where(PAUSE_RECORDS.c.place == place)
            )
        if sealed is None:
            return None
        try:
            sealed_for, text = json.loads(self._sealer.unseal(sealed))
        except ValueError as error:
            raise PayloadBindingError("the record of this pause cannot be unsealed") from error
        if sealed_for != place:
            raise PayloadBindingError("the record of this pause was sealed for another place")
        return str(text)

    async def write_metadata(self, *, thread_id: str, checkpoint_id: str, key: str, value: str, task_id: str) -> None:
        """Record the text, replacing what was there; `task_id` is part of the run's own records and is not kept."""
        del task_id
        place = _hash(thread_id, checkpoint_id, key)
        sealed = self._sealer.seal(json.dumps([place, value]).encode())
        async with try_again(), self._engine.begin() as connection:
            await _put(connection, PAUSE_RECORDS, place=place, sealed=sealed, written_at=self._now())

    async def resolve_checkpoint_id(self, *, thread_id: str) -> str | None:
        """Return the thread's current checkpoint, or None where it has none."""
        async with try_again(), self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            found: str | None = await connection.scalar(
                select(PAUSE_THREADS.c.checkpoint_id).where(PAUSE_THREADS.c.thread == _hash(thread_id))
            )
        return found

    async def delete_metadata(self, *, thread_id: str, checkpoint_id: str, key: str) -> None:
        """Forget the text; no error where there is none."""
        place = _hash(thread_id, checkpoint_id, key)
        async with try_again(), self._engine.begin() as connection:
            await connection.execute(delete(PAUSE_RECORDS).where(PAUSE_RECORDS.c.place == place))

    async def set_current(self, thread_id: str, checkpoint_id: str) -> None:
        """Say which checkpoint the thread stands at."""
        async with try_again(), self._engine.begin() as connection:
            await _put(
                connection,
                PAUSE_THREADS,
                thread=_hash(thread_id),
                checkpoint_id=checkpoint_id,
                moved_at=self._now(),
            )

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _hash(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


async def _put(connection: AsyncConnection, table: Table, **values: object) -> None:
    """Insert the row, or replace everything but its key."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    keys = [column.name for column in table.primary_key]
    statement = insert(table).values(**values)
    replaced = {name: statement.excluded[name] for name in values if name not in keys}
    await connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=replaced))
