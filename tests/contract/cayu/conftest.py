"""Real stores with a reconciler on the same kind of database: both on SQLite, then both on PostgreSQL."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import select

from reconciler.tables import NOTIFICATIONS
from tests.support.cayu_ends import DATABASES
from tests.support.cayu_stores import CayuStore
from tests.support.reconciling import Reconciling
from tests.support.sources import cayu_source


@dataclass
class Case:
    """A paused store (tests/support/cayu_stores.py), the source that reads it, and Handbell."""

    store: CayuStore
    source: Any
    reconciling: Reconciling

    async def sessions(self) -> dict[str, str]:
        """Return the state of every notification by the session that it is about."""
        return {row.session_id: row.state for row in await self.reconciling.rows(select(NOTIFICATIONS))}


async def _case(store: CayuStore, engine: Any) -> AsyncIterator[Case]:
    source = cayu_source(store.url)
    yield Case(store, source, Reconciling(engine, source=source))  # type: ignore[arg-type]
    await source.close()


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest) -> str:
    """Name the database of both."""
    return str(request.param)


@pytest.fixture
def _engine(request: pytest.FixtureRequest, database: str) -> Any:
    return request.getfixturevalue(f"{database}_engine")


@pytest.fixture
def _own_store(request: pytest.FixtureRequest, database: str) -> CayuStore:
    store: CayuStore = request.getfixturevalue("cayu_store" if database == "sqlite" else "postgres_cayu_store")
    return store


@pytest.fixture
def _unchanged_store(request: pytest.FixtureRequest, database: str) -> CayuStore:
    if database == "sqlite":
        return CayuStore(str(request.getfixturevalue("paused_file")))
    return CayuStore(request.getfixturevalue("_shared_database"))


@pytest.fixture
async def own(_own_store: CayuStore, _engine: Any) -> AsyncIterator[Case]:
    """Give a store that the test may change."""
    async for case in _case(_own_store, _engine):
        yield case


@pytest.fixture
async def paused(_unchanged_store: CayuStore, _engine: Any) -> AsyncIterator[Case]:
    """Give a store that nobody changes."""
    async for case in _case(_unchanged_store, _engine):
        yield case
