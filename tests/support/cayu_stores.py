"""Cayu stores with real pauses: made once for the session, copied for each test (a pause costs 0.7 s of CPU).

| session        | pause                                                                     |
|----------------|---------------------------------------------------------------------------|
| ask            | question; labels requester and team                                       |
| approve        | approval without expiry                                                   |
| expiring       | approval whose deadline is past by the time a test sees it                |
| recover        | manual recovery                                                           |
| parent         | delegates to a child that asks; label requester                           |
| nested         | delegates to a child that delegates to a child that asks; label requester |
| quiet          | opted out, delegates to a child that asks                                 |
| trial          | eval trial, asks                                                          |
"""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from cayu import CayuApp
from cayu.sessions import PendingActionQuery
from cayu.sessions._run_identity import eval_trial_scope

from tests.support.cayu_postgres import CayuServer
from tests.support.made_once import folder_of_the_run, made_once
from tests.support.postgres import execute, new_database
from worker.scripted.runtime import close_store, make_app, open_store, pause
from worker.scripted.settling import Verb, current_action, settle


@dataclass(frozen=True)
class CayuStore:
    """A store that a test may change: its location, and what a resolving process does with it."""

    url: str

    @asynccontextmanager
    async def runtime(self) -> AsyncIterator[tuple[Any, CayuApp]]:
        """Give the writable store and an application with the agents, for the time of a block."""
        store = open_store(self.url)
        try:
            yield store, make_app(store)
        finally:
            await close_store(store)

    async def settle(self, session_id: str, verb: Verb) -> None:
        """Settle the session's pending action (a delegated parent's child's)."""
        async with self.runtime() as (store, app):
            await settle(app, await current_action(store, session_id), verb)

    async def break_down(self) -> None:
        """Take the store away from whoever reads it."""
        if not self.url.startswith("postgresql://"):
            Path(self.url).rename(self.url + ".away")
            return
        name = self.url.partition("@/")[2].partition("?")[0]
        admin = await asyncpg.connect(self.url.replace(f"/{name}?", "/postgres?"))
        await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
        await admin.close()

    async def actions(self) -> list[Any]:
        """Return what the runtime itself shows as pending."""
        async with self.runtime() as (store, _app):
            page = await store.query_pending_actions(PendingActionQuery(limit=200))
            return list(page.actions)


async def make_pauses(store: Any) -> None:
    """Put a pause of every sort into an empty store."""
    app = make_app(store)
    await pause(app, "user_input", "ask", labels={"requester": "alice@example.com", "team": "blue"})
    await pause(app, "tool_approval", "approve")
    await pause(app, "tool_approval_expiring", "expiring", ttl_seconds=0.01)
    await pause(app, "manual_recovery", "recover")
    await pause(app, "delegated_action", "parent", labels={"requester": "bob@example.com"})
    await pause(app, "nested_delegated_action", "nested", labels={"requester": "carol@example.com"})
    await pause(app, "delegated_action", "quiet", metadata={"cayu:attention_handoff": False})
    async with eval_trial_scope():
        await pause(app, "user_input", "trial")


@pytest.fixture(scope="session")
def paused_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the paused SQLite store, which no test may change; one for all workers of a run."""
    folder = folder_of_the_run(tmp_path_factory)

    async def fill(path: Path) -> None:
        store = open_store(str(path))
        await make_pauses(store)
        await close_store(store)

    path = folder / "cayu-paused" / "cayu.db"
    with made_once(path.parent) as is_new:
        if is_new:
            asyncio.run(fill(path))
    return path


@pytest.fixture
def cayu_store(paused_file: Path, tmp_path: Path) -> CayuStore:
    """Return a copy of the paused store, on SQLite."""
    folder = tmp_path / "agent"
    folder.mkdir()
    return CayuStore(str(shutil.copy(paused_file, folder / "cayu.db")))


@pytest.fixture(scope="session")
def _paused_database(cayu_postgres_server: CayuServer) -> str:
    """Name a PostgreSQL database with the pauses, to be copied: nobody may be connected to it."""
    name = "cayu_paused"

    async def fill() -> None:
        await execute(cayu_postgres_server, f"CREATE DATABASE {name}")
        store = open_store(cayu_postgres_server.get_uri(name), migrate=True)
        await make_pauses(store)
        await close_store(store)

    asyncio.run(fill())
    return name


@pytest.fixture(scope="session")
def _shared_database(cayu_postgres_server: CayuServer, _paused_database: str) -> str:
    asyncio.run(execute(cayu_postgres_server, f"CREATE DATABASE cayu_shared TEMPLATE {_paused_database}"))
    return cayu_postgres_server.get_uri("cayu_shared")


@pytest.fixture
async def postgres_cayu_store(cayu_postgres_server: CayuServer, _paused_database: str) -> AsyncIterator[CayuStore]:
    """Give a copy of the paused store, on PostgreSQL (one costs more than a second)."""
    async with new_database(cayu_postgres_server, template=_paused_database) as url:
        yield CayuStore(url)


@pytest.fixture
def shared_postgres_cayu_store(_shared_database: str) -> CayuStore:
    """Return a paused store on PostgreSQL that the test must not change."""
    return CayuStore(_shared_database)


@pytest.fixture(params=["sqlite", "postgresql"])
def any_cayu_store(request: pytest.FixtureRequest) -> Any:
    """Return a copy of the paused store, once on each database."""
    return request.getfixturevalue("cayu_store" if request.param == "sqlite" else "postgres_cayu_store")


@pytest.fixture(params=["sqlite", "postgresql"])
def unchanged_cayu_store(request: pytest.FixtureRequest) -> Any:
    """Return a paused store that the test must not change, once on each database."""
    return request.getfixturevalue("cayu_store" if request.param == "sqlite" else "shared_postgres_cayu_store")
