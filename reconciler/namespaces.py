"""What a namespace remembers: the store that stands behind it, when its sweeps are due, where one stopped.

The first start with a source of that name writes the row. Another store under the same name is refused by every
door until a person accepts it (`handbell sources accept NAMESPACE`), so that two databases never share identities.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import case, insert, literal, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock
from config.database import READ_ONLY
from config.metadata import Instant
from config.statements import insert_ignoring
from reconciler.errors import UnknownNamespace, WrongStore
from reconciler.sources.protocol import Incomplete, Source
from reconciler.tables import AUDIT, NAMESPACES


@dataclass(frozen=True, slots=True)
class Remembered:
    """A namespace's row."""

    namespace: str
    source_type: str
    store_identity: str | None
    enrolled_after: datetime | None
    sweep_due_at: datetime
    head_due_at: datetime
    scan_cursor: str | None
    scan_started_at: datetime | None
    scan_problems: frozenset[Incomplete]
    complete_since: datetime | None
    covered_since: datetime | None
    verify_after: int


class Namespaces:
    """Reads and writes what namespaces remember."""

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    async def remember(
        self, namespace: str, source_type: str, source: Source, *, enrolled_after: datetime | None = None
    ) -> Remembered:
        """Write the row where there is none yet, and check that the store is the one it knows.

        The enrollment boundary is kept from the first start on: a later, different setting does not move it.
        Raises WrongStore, or another SourceError where the store cannot say who it is; the row is written also then.
        """
        await self._write(namespace, source_type, None, enrolled_after)
        identity = await source.identity()
        if identity is not None:
            await self._write(namespace, source_type, identity, enrolled_after)
        remembered = await self.get(namespace)
        if identity is not None and remembered.store_identity != identity:
            raise WrongStore(
                Incomplete.WRONG_STORE,
                f"namespace {namespace!r}: the store found is not the one it knows; if that is meant, run "
                f"`handbell sources accept {namespace}`",
            )
        return remembered

    async def accept(self, namespace: str, identity: str | None, *, actor: str) -> None:
        """Take the store now found as the namespace's own, recorded; its next pass starts from the beginning."""
        remembered = await self.get(namespace)
        now = self._clock.now()
        async with self._engine.begin() as connection:
            await connection.execute(
                update(NAMESPACES)
                .where(NAMESPACES.c.namespace == namespace)
                .values(
                    store_identity=identity,
                    scan_cursor=None,
                    scan_started_at=None,
                    scan_problems="",
                    covered_since=None,
                    complete_since=None,
                    sweep_due_at=now,
                    head_due_at=now,
                )
            )
            detail = f"store {remembered.store_identity or 'none'} replaced by {identity or 'none'}"
            await connection.execute(
                insert(AUDIT).values(
                    done_at=now, actor=actor, action="sources.accept", subject=namespace, detail=detail
                )
            )

    async def get(self, namespace: str) -> Remembered:
        """Return the row of one namespace; raises UnknownNamespace."""
        for remembered in await self._select(NAMESPACES.c.namespace == namespace):
            return remembered
        raise UnknownNamespace(f"namespace {namespace!r} has no source and was never seen")

    async def boundaries(self) -> Mapping[str, datetime | None]:
        """Return the enrollment boundary of every namespace that was ever started."""
        every = await self._select(NAMESPACES.c.namespace.is_not(None))
        return {remembered.namespace: remembered.enrolled_after for remembered in every}

    async def due(self, namespaces: Sequence[str]) -> Sequence[Remembered]:
        """Return those of `namespaces` whose full or head pass is due now."""
        now = self._clock.now()
        is_due = (NAMESPACES.c.sweep_due_at <= now) | (NAMESPACES.c.head_due_at <= now)
        return await self._select(NAMESPACES.c.namespace.in_(namespaces) & is_due)

    async def save(self, namespace: str, values: Mapping[str, Any]) -> None:
        """Write columns of the namespace's row, in a transaction of their own."""
        async with self._engine.begin() as connection:
            await connection.execute(update(NAMESPACES).where(NAMESPACES.c.namespace == namespace).values(dict(values)))

    async def finish(self, before: Remembered, values: Mapping[str, Any]) -> None:
        """Write what a pass leaves; one that was asked for since the pass began (`before`) stays due at once."""
        columns = NAMESPACES.c
        kept = {
            name: case((columns[name] == getattr(before, name), literal(values[name], Instant())), else_=columns[name])
            for name in ("sweep_due_at", "head_due_at")
            if name in values
        }
        await self.save(before.namespace, {**values, **kept})

    async def want_head(self, namespaces: Sequence[str]) -> None:
        """Make a head pass of each due now: a hint named a session that the source does not know."""
        async with self._engine.begin() as connection:
            await connection.execute(
                update(NAMESPACES).where(NAMESPACES.c.namespace.in_(namespaces)).values(head_due_at=self._clock.now())
            )

    async def want_full(self) -> None:
        """Make a full pass of every namespace due now: the stream showed a gap."""
        async with self._engine.begin() as connection:
            await connection.execute(update(NAMESPACES).values(sweep_due_at=self._clock.now()))

    async def _write(
        self, namespace: str, source_type: str, identity: str | None, enrolled_after: datetime | None
    ) -> None:
        now = self._clock.now()
        async with self._engine.begin() as connection:
            values = {
                "namespace": namespace,
                "source_type": source_type,
                "store_identity": identity,
                "first_seen_at": now,
                "enrolled_after": enrolled_after,
                "sweep_due_at": now,
                "head_due_at": now,
            }
            await connection.execute(insert_ignoring(connection, NAMESPACES), [values])
            if identity is not None:
                await connection.execute(
                    update(NAMESPACES)
                    .where(NAMESPACES.c.namespace == namespace, NAMESPACES.c.store_identity.is_(None))
                    .values(store_identity=identity)
                )

    async def _select(self, where: Any) -> Sequence[Remembered]:
        columns = (
            NAMESPACES.c.namespace,
            NAMESPACES.c.source_type,
            NAMESPACES.c.store_identity,
            NAMESPACES.c.enrolled_after,
            NAMESPACES.c.sweep_due_at,
            NAMESPACES.c.head_due_at,
            NAMESPACES.c.scan_cursor,
            NAMESPACES.c.scan_started_at,
            NAMESPACES.c.scan_problems,
            NAMESPACES.c.complete_since,
            NAMESPACES.c.covered_since,
            NAMESPACES.c.verify_after,
        )
        async with self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            rows = await connection.execute(select(*columns).where(where).order_by(NAMESPACES.c.namespace))
            return [Remembered(**{**row._mapping, "scan_problems": parse_problems(row.scan_problems)}) for row in rows]


def parse_problems(text: str) -> frozenset[Incomplete]:
    """Read what `join_problems` wrote."""
    return frozenset(Incomplete(word) for word in text.split(",") if word)


def join_problems(problems: frozenset[Incomplete]) -> str:
    """Return the words in a fixed order, joined by a comma."""
    return ",".join(sorted(problems))
