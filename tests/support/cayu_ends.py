"""How every request ends at a real runtime, as Handbell stores it: made once for each database.

The settled store (tests/support/cayu_settled.py) is copied; what no call of Cayu 0.15 could be made to commit is
committed through the store's own `append_event`, which is all that its inspector reads:

| call of session `recover-failed` | committed evidence                                            |
|----------------------------------|---------------------------------------------------------------|
| blocked                          | tool.call.blocked                                             |
| confirmed-failure                | tool.call.failed of a manual recovery                         |
| unknown-failure                  | tool.call.failed of a manual recovery, marked outcome_unknown |
| to-reconcile                     | tool.call.failed, marked manual_reconciliation_required       |
| other-round                      | tool.call.completed, of another round                         |
| (session `recover`) flooded      | tool.call.completed, behind a hundred others                  |

and `late-grant` is an approval that was granted in its window and finished two hours later.
"""

import asyncio
import pickle
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from cayu import ToolContext, ToolResult
from cayu.events import Event, EventType
from sqlalchemy import Row, select

from reconciler.notifications import Applied
from reconciler.reasons import Door
from reconciler.references import Observation, Reference, Request, cayu_attention_id
from reconciler.states import AttentionState, Evidence
from reconciler.sweep import Mode, Pass
from reconciler.tables import HISTORY, NOTIFICATIONS
from tests.support.cayu_settled import SettledStore
from tests.support.cayu_stores import CayuStore
from tests.support.databases import TEMPLATE, engine_for
from tests.support.made_once import folder_of_the_run, made_once
from tests.support.paging_source import BEGINNING
from tests.support.postgres import Server, new_database
from tests.support.reconciling import NAMESPACE, Reconciling
from tests.support.sources import cayu_source, shown
from worker.scripted import runtime
from worker.scripted.settling import current_action, settle

DATABASES = ("sqlite", "postgres")

_FAILED = {"manual_recovery": True, "result": {"content": "it failed", "is_error": True}}
_INJECTED: dict[str, tuple[EventType, dict[str, Any]]] = {
    "blocked": (EventType.TOOL_CALL_BLOCKED, {}),
    "confirmed-failure": (EventType.TOOL_CALL_FAILED, _FAILED),
    "unknown-failure": (EventType.TOOL_CALL_FAILED, {**_FAILED, "outcome_unknown": True}),
    "to-reconcile": (EventType.TOOL_CALL_FAILED, {**_FAILED, "manual_reconciliation_required": True}),
    "other-round": (EventType.TOOL_CALL_COMPLETED, {"tool_round_id": "another round"}),
}
FLOOD = 100


@dataclass(frozen=True)
class Ends:
    """What became of each request by its session (or call), and how Handbell got there."""

    references: dict[str, Reference]
    rows: dict[str, SimpleNamespace]
    history: dict[str, list[SimpleNamespace]]
    passed: Pass
    while_uncertain: Pass
    late_grant: list[tuple[AttentionState, Evidence]]


class LosesItsConnection(runtime.DeployTool):
    """Was approved, and nobody knows whether it deployed."""

    async def run(self, ctx: ToolContext, args: dict[str, Any]) -> ToolResult:
        """Raise on the way."""
        raise RuntimeError("connection lost")


async def _finish_late(store: CayuStore, reconciling: Reconciling) -> tuple[Reference, Pass, list[Any]]:
    """Grant an approval in its window, lose the tool, and finish the recovery two hours later."""
    now = datetime.now(UTC)
    told: list[Any] = []
    source = reconciling.source
    async with store.runtime() as (writable, _):
        with mock.patch.object(runtime, "DeployTool", LosesItsConnection):
            app = runtime.make_app(writable, clock=lambda: now)
        await runtime.pause(app, "tool_approval_expiring", "late-grant", ttl_seconds=3600.0)
        action = await current_action(writable, "late-grant")
        reference = (await shown(source))["late-grant"].reference  # type: ignore[arg-type]
        await settle(app, action, "approve")
        while_uncertain = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
        assert while_uncertain is not None
        for later in (timedelta(0), timedelta(hours=2)):
            now += later
            seen = await source.observe(reference)
            told.append((seen.state, seen.reason))
        await settle(app, action, "recover-completed")
    seen = await source.observe(reference)
    return reference, while_uncertain, [*told, (seen.state, seen.reason)]


async def _inject(store: CayuStore, references: dict[str, Reference]) -> dict[str, Reference]:
    """Commit the evidence; return the references that it is about."""
    failed, recovered = references["recover-failed"], references["recover"]
    about = {call: _of_call(failed, call) for call in _INJECTED} | {"flooded": _of_call(recovered, "flooded")}
    events = [
        _event(failed, event_type, {"tool_round_id": failed.round_id, "tool_call_id": call} | payload)
        for call, (event_type, payload) in _INJECTED.items()
    ]
    others = [{"tool_round_id": "another round", "tool_call_id": f"call-{number}"} for number in range(FLOOD)]
    flooded = {"tool_round_id": recovered.round_id, "tool_call_id": "flooded"}
    events += [_event(recovered, EventType.TOOL_CALL_COMPLETED, payload) for payload in (*others, flooded)]
    async with store.runtime() as (writable, _app):
        for event in events:
            await writable.append_event(event.session_id, event)
    return about


def _of_call(reference: Reference, call: str) -> Reference:
    changed = replace(reference, tool_call_id=call)
    return replace(changed, attention_id=cayu_attention_id(changed))


def _event(reference: Reference, event_type: EventType, payload: dict[str, Any]) -> Event:
    return Event(type=event_type, session_id=reference.session_id, tool_name="deploy", payload=payload)


async def enroll(reconciling: Reconciling, references: dict[str, Reference]) -> Applied:
    """Enroll every reference as active, as an earlier pass did."""
    seen = [
        Observation(reference, AttentionState.ACTIVE, Evidence.CURRENT_ACTION, BEGINNING, Request(agent_name="worker"))
        for reference in references.values()
    ]
    return await reconciling.notifications.apply(NAMESPACE, seen, door=Door.SWEEP)


async def _play(settled: SettledStore, store: CayuStore, handbell_url: str) -> Ends:
    engine = engine_for(handbell_url)
    reconciling = Reconciling(engine, source=cayu_source(store.url))  # type: ignore[arg-type]
    late, while_uncertain, late_grant = await _finish_late(store, reconciling)
    references = {**settled.references, "late-grant": late}
    references |= await _inject(store, settled.references)
    await enroll(reconciling, references)
    passed = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    assert passed is not None
    by_id = {row.attention_id: row for row in _plain(await reconciling.rows(select(NOTIFICATIONS)))}
    history = _plain(await reconciling.rows(select(HISTORY).order_by(HISTORY.c.id)))
    await reconciling.book.close()
    await engine.dispose()
    rows = {name: by_id[reference.attention_id] for name, reference in references.items()}
    lives = {name: [step for step in history if step.notification_id == row.id] for name, row in rows.items()}
    return Ends(references, rows, lives, passed, while_uncertain, late_grant)


def _plain(rows: Sequence[Row[Any]]) -> list[SimpleNamespace]:
    return [SimpleNamespace(**row._mapping) for row in rows]


async def _play_on_sqlite(settled: SettledStore, template: Path, folder: Path) -> Ends:
    store = CayuStore(str(shutil.copy(settled.store.url, folder / "cayu.db")))
    return await _play(settled, store, f"sqlite:///{shutil.copy(template, folder / 'handbell.db')}")


async def _play_on_postgres(settled: SettledStore, agents: Server, handbell: Server) -> Ends:
    async with (
        new_database(agents, template="cayu_settled") as url,
        new_database(handbell, template=TEMPLATE) as handbell_url,
    ):
        return await _play(settled, CayuStore(url), handbell_url)


@pytest.fixture(scope="session")
def _ends_by_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Ends]:
    """Return what gives the ends on a database; they are played once in a run, by whichever worker is first."""
    value = request.getfixturevalue

    def play(database: str, folder: Path) -> Ends:
        settled = value(f"settled_{database}")
        if database == "sqlite":
            return asyncio.run(_play_on_sqlite(settled, value("migrated_sqlite_file"), folder))
        servers = value("cayu_postgres_server"), value("migrated_postgres_server")
        return asyncio.run(_play_on_postgres(settled, *servers))

    @cache
    def ends_on(database: str) -> Ends:
        kept = folder_of_the_run(tmp_path_factory) / f"ends-{database}" / "ends.pickle"
        with made_once(kept.parent) as is_new:
            if is_new:
                kept.write_bytes(pickle.dumps(play(database, kept.parent)))
        loaded: Ends = pickle.loads(kept.read_bytes())
        return loaded

    return ends_on


@pytest.fixture(params=DATABASES)
def ends(request: pytest.FixtureRequest, _ends_by_database: Callable[[str], Ends]) -> Ends:
    """Return how everything ended, once on each database; the databases are nobody's to use any more."""
    return _ends_by_database(request.param)
