"""The databases that every promise holds on: `engine` runs a test on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

import reconciler.tables
import sinks.tables
from config.database import create_engine, database_url
from config.metadata import METADATA

ROOMS_WITH_TABLES = (sinks.tables, reconciler.tables)  # importing them is what fills the metadata


@asynccontextmanager
async def open_engine(url: str, directory: Path) -> AsyncIterator[AsyncEngine]:
    """Open an engine, make every table, and dispose of the engine."""
    engine = create_engine(database_url(url, relative_to=directory))
    async with engine.begin() as connection:
        await connection.run_sync(METADATA.create_all)
    yield engine
    await engine.dispose()


@pytest.fixture(params=["sqlite", "postgres"])
def any_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database: of a SQLite file, then of a PostgreSQL database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/handbell.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
async def engine(any_database_url: str, tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """An engine on an empty database that has every table."""
    async with open_engine(any_database_url, tmp_path) as engine:
        yield engine


@pytest.fixture
async def sqlite_engine(tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """An engine on an empty SQLite file that has every table, for what no database differs in."""
    async with open_engine(f"sqlite:///{tmp_path}/handbell.db", tmp_path) as engine:
        yield engine
