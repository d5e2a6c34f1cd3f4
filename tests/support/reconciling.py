"""A reconciler on a real database with a scripted source and a frozen clock, put together as the application does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock
from reconciler.namespaces import Namespaces
from reconciler.notifications import Notifications
from reconciler.refresh import Refresher
from reconciler.routes import Routing, Target, default_routes
from reconciler.source_book import Entry, SourceBook
from reconciler.sweep import Sweeper
from reconciler.tables import DELIVERIES, HISTORY, NOTIFICATIONS, SWEEPS
from sinks.emit.hint import Hint
from sinks.inbox import Inbox
from tests.support.paging_source import BEGINNING, PagingSource

NAMESPACE = "prod"
TARGETS = {
    "ops": Target("ops", "console", ("ops",)),
    "mail": Target("mail", "email", ("a@example.com", "b@example.com")),
}


@dataclass
class Reconciling:
    """Everything of the room, on one database; `also` adds sources under other namespaces."""

    engine: AsyncEngine
    source: PagingSource = field(default_factory=PagingSource)
    also: Mapping[str, PagingSource] = field(default_factory=dict)
    page_budget: int = 32

    def __post_init__(self) -> None:
        self.clock = FrozenClock(BEGINNING)
        self.rings = 0
        self.namespaces = Namespaces(self.engine, self.clock)
        entries = {name: self._entry(name, source) for name, source in {NAMESPACE: self.source, **self.also}.items()}
        self.book = SourceBook(entries, self.namespaces)
        routing = Routing(default_routes(TARGETS), TARGETS)
        self.notifications = Notifications(self.engine, self.clock, lambda: routing, on_outbox=self._ring)
        self.inbox = Inbox(self.engine, self.clock)
        self.refresher = Refresher(self.engine, self.clock, self.inbox, self.book, self.namespaces, self.notifications)
        self.sweeper = Sweeper(
            self.engine, self.clock, self.book, self.namespaces, self.notifications, page_budget=self.page_budget
        )

    async def hint(self, session_id: str, event_id: str, event_type: str = "session.interrupted", **of: str) -> None:
        """Put a hint into the inbox, as the consumer does."""
        namespace = of.get("namespace", NAMESPACE)
        await self.inbox.insert([Hint(namespace, session_id, event_id, event_type, BEGINNING)])

    async def states(self, namespace: str = NAMESPACE) -> dict[str, str]:
        """Return the state of every request of a namespace by its attention id."""
        rows = await self.rows(select(NOTIFICATIONS).where(NOTIFICATIONS.c.namespace == namespace))
        return {row.attention_id: row.state for row in rows}

    async def deliveries(self) -> list[tuple[str, str, str, str]]:
        """Return (destination, recipient, purpose, status) of every delivery."""
        rows = await self.rows(select(DELIVERIES).order_by(DELIVERIES.c.id))
        return [(row.destination, row.recipient, row.purpose, row.status) for row in rows]

    async def history(self) -> list[tuple[str | None, str, bool]]:
        """Return (from, to, is a conflict) of every history row, oldest first."""
        rows = await self.rows(select(HISTORY).order_by(HISTORY.c.id))
        return [(row.from_state, row.to_state, row.is_conflict) for row in rows]

    async def passes(self) -> list[Row[Any]]:
        """Return the recorded sweeps, oldest first."""
        return await self.rows(select(SWEEPS).order_by(SWEEPS.c.id))

    async def rows(self, statement: Any) -> list[Row[Any]]:
        """Return the rows of a query."""
        async with self.engine.connect() as connection:
            return list((await connection.execute(statement)).all())

    def _entry(self, name: str, source: PagingSource) -> Entry:
        return Entry(name, "scripted", source, timedelta(minutes=5), timedelta(seconds=15))

    def _ring(self) -> None:
        self.rings += 1


@pytest.fixture
def reconciling(engine: AsyncEngine) -> Reconciling:
    """Return a reconciler on SQLite, and on PostgreSQL."""
    return Reconciling(engine)
