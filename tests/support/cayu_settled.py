"""A Cayu store in which every request has come to its end, in every way that Cayu 0.15 knows; made once."""

import asyncio
import pickle
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.references import Reference
from tests.support.cayu_postgres import CayuServer
from tests.support.cayu_stores import CayuStore
from tests.support.made_once import folder_of_the_run, made_once
from tests.support.postgres import execute
from tests.support.sources import cayu_source, shown
from worker.scripted.runtime import Kind, pause
from worker.scripted.settling import Verb, current_action, settle

# Beyond those of tests/support/cayu_stores.py.
_MORE_PAUSES: tuple[tuple[str, Kind], ...] = (
    ("interrupted", "user_input"),
    ("denied", "tool_approval"),
    ("given-up", "tool_approval"),
    ("recover-failed", "manual_recovery"),
    ("deleted", "user_input"),
    ("recreated", "user_input"),
)
_SETTLED: tuple[tuple[str, Verb], ...] = (
    ("ask", "answer"),
    ("parent", "answer"),
    ("interrupted", "interrupt"),
    ("approve", "approve"),
    ("denied", "deny"),
    ("given-up", "interrupt"),
    ("expiring", "expire"),
    ("recover", "recover-completed"),
    ("recover-failed", "recover-failed"),
)


@dataclass(frozen=True)
class SettledStore:
    """The store after it all, and the references that were shown before, by session."""

    store: CayuStore
    references: dict[str, Reference]


async def _settle_everything(store: CayuStore) -> SettledStore:
    async with store.runtime() as (_store, app):
        for session_id, kind in _MORE_PAUSES:
            await pause(app, kind, session_id)
    source = cayu_source(store.url)
    references = {session_id: item.reference for session_id, item in (await shown(source)).items()}
    await source.close()
    async with store.runtime() as (writable, app):
        for session_id, verb in _SETTLED:
            await settle(app, await current_action(writable, session_id), verb)
        await writable.delete_session("deleted")
        await writable.delete_session("recreated")
        await pause(app, "user_input", "recreated")
    return SettledStore(store, references)


@pytest.fixture(scope="session")
def settled_sqlite(paused_file: Path, tmp_path_factory: pytest.TempPathFactory) -> SettledStore:
    """Return the settled SQLite store, one for all workers of a run."""
    path = folder_of_the_run(tmp_path_factory) / "cayu-settled" / "cayu.db"
    references = path.with_name("references.pickle")
    with made_once(path.parent) as is_new:
        if is_new:
            shutil.copy(paused_file, path)
            references.write_bytes(pickle.dumps(asyncio.run(_settle_everything(CayuStore(str(path)))).references))
    return SettledStore(CayuStore(str(path)), pickle.loads(references.read_bytes()))


@pytest.fixture(scope="session")
def settled_postgres(cayu_postgres_server: CayuServer, _paused_database: str) -> SettledStore:
    asyncio.run(execute(cayu_postgres_server, f"CREATE DATABASE cayu_settled TEMPLATE {_paused_database}"))
    return asyncio.run(_settle_everything(CayuStore(cayu_postgres_server.get_uri("cayu_settled"))))


@pytest.fixture
def settled_references(settled_sqlite: SettledStore) -> dict[str, Reference]:
    """Return the references of the settled SQLite store, by session."""
    return settled_sqlite.references


@pytest.fixture(params=["sqlite", "postgres"])
def settled_store(request: pytest.FixtureRequest) -> Any:
    """Return the settled store, once on each database; a test must not change it."""
    return request.getfixturevalue(f"settled_{request.param}")
