"""The marker that ties a test to a numbered statement, and the rig in both modes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from config.metadata import METADATA
from reconciler.pause_store.tables import PAUSE_TABLES
from tests.contract.pause_tokens.kit import MODES, Rig
from tests.support.databases import engine_for


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "statement(*numbers): the statements and traps that the test proves")


@pytest.fixture(params=MODES)
def rig(request: pytest.FixtureRequest) -> Rig:
    """A working deployment, once in library mode and once in operated mode."""
    return Rig(mode=request.param)


@pytest.fixture
async def sqlite_pause_url(tmp_path: Path) -> str:
    """An SQLite database with the tables of pause tokens."""
    return await with_tables(f"sqlite:///{tmp_path / 'pauses.db'}")


@pytest.fixture
async def postgres_pause_url(postgres_url: str) -> str:
    """A PostgreSQL database with the tables of pause tokens."""
    return await with_tables(postgres_url)


@pytest.fixture(params=["sqlite", "postgres"])
def pause_url(request: pytest.FixtureRequest) -> str:
    """A database with the tables of pause tokens, once of each kind."""
    url: str = request.getfixturevalue(f"{request.param}_pause_url")
    return url


@pytest.fixture
async def engine(pause_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on it."""
    engine = engine_for(pause_url)
    yield engine
    await engine.dispose()


async def with_tables(url: str) -> str:
    engine = engine_for(url)
    async with engine.begin() as connection:
        await connection.run_sync(METADATA.create_all, tables=list(PAUSE_TABLES))
    await engine.dispose()
    return url
