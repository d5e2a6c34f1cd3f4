"""The real handoff of Cayu against our receiver over TCP: what it does in an agent's life, and what an outage costs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from cayu import CayuApp
from cayu.human_attention_handoff import HumanAttentionHandoff, HumanAttentionHandoffError, HumanAttentionReceiver
from cayu.runtime import HumanAttentionReference
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.references import Reference, cayu_attention_id
from reconciler.states import Kind
from reconciler.tables import NOTIFICATIONS
from tests.support.handoff import TOKEN, handoff_app, point, reports, serving
from tests.support.handoff_server import receiver
from worker.scripted.runtime import close_store, make_app, open_store, pause
from worker.scripted.settling import Verb, current_action, settle


@dataclass(frozen=True)
class Agent:
    """A Cayu application that hands off to a receiver."""

    app: CayuApp
    store: Any
    handoff: HumanAttentionHandoff

    async def settle(self, session_id: str, verb: Verb) -> None:
        await settle(self.app, await current_action(self.store, session_id), verb)

    async def undelivered(self) -> list[str]:
        found = await self.store.list_persisted_event_side_effect_deliveries(limit=1000)
        return [row.status.value for row in found if row.status.value != "delivered"]


@asynccontextmanager
async def agent(folder: Path, url: str, *, token: str = TOKEN, **options: Any) -> AsyncIterator[Agent]:
    receiver = HumanAttentionReceiver(url=f"{url}/handoff/prod", token=token)
    handoff = HumanAttentionHandoff(receiver, failure_backoff_seconds=0, **options)
    store = open_store(str(folder / "cayu.db"))
    try:
        yield Agent(make_app(store, handoff=handoff), store, handoff)
    finally:
        await close_store(store)


async def states(engine: AsyncEngine) -> dict[str, tuple[str, str, str | None]]:
    """Return kind, state and requester of what is enrolled, by session."""
    async with engine.connect() as connection:
        rows = await connection.execute(select(NOTIFICATIONS).where(NOTIFICATIONS.c.namespace == "prod"))
        return {row.session_id: (row.kind, row.state, row.requester) for row in rows}


LIVES: list[tuple[Any, Verb, str, str]] = [
    ("user_input", "answer", "user_input", "resolved"),
    ("user_input", "interrupt", "user_input", "superseded"),
    ("tool_approval", "deny", "tool_approval", "cancelled"),
    ("manual_recovery", "recover-completed", "manual_recovery", "resolved"),
]


async def test_each_kind_of_request_lives_and_ends_at_the_receiver(sqlite_engine: AsyncEngine, tmp_path: Path) -> None:
    app = handoff_app({"prod": point(sqlite_engine, "prod")})
    async with serving(app) as server, agent(tmp_path, server.url) as producer:
        for number, (kind, _, _, _) in enumerate(LIVES):
            await pause(producer.app, kind, f"s-{number}", labels={"requester": "alice@example.com"})
        opened = await states(sqlite_engine)
        for number, (_, verb, _, _) in enumerate(LIVES):
            await producer.settle(f"s-{number}", verb)
        settled = await states(sqlite_engine)
        await producer.handoff.reconcile_once()
        undelivered = await producer.undelivered()

    assert opened == {f"s-{n}": (kind, "active", "alice@example.com") for n, (_, _, kind, _) in enumerate(LIVES)}
    assert settled == {f"s-{n}": (kind, end, "alice@example.com") for n, (_, _, kind, end) in enumerate(LIVES)}
    assert undelivered == []
    report = (await reports(sqlite_engine))["prod"]
    assert (report.scan_complete, report.verify_complete, report.issues) == (True, True, ())


async def test_delegated_request_is_the_childs_with_its_parents_requester(
    postgres_engine: AsyncEngine, tmp_path: Path
) -> None:
    app = handoff_app({"prod": point(postgres_engine, "prod")})
    async with serving(app) as server, agent(tmp_path, server.url) as producer:
        await pause(producer.app, "delegated_action", "parent", labels={"requester": "bob"})
        opened = await states(postgres_engine)
        await producer.settle("parent", "answer")
        await producer.handoff.reconcile_once()

    assert list(opened.values()) == [("user_input", "active", "bob")]
    assert "parent" not in opened
    assert [state for _, state, _ in (await states(postgres_engine)).values()] == ["resolved"]


async def test_session_that_opted_out_never_appears(sqlite_engine: AsyncEngine, tmp_path: Path) -> None:
    app = handoff_app({"prod": point(sqlite_engine, "prod")})
    async with serving(app) as server, agent(tmp_path, server.url) as producer:
        await pause(producer.app, "user_input", "quiet", metadata={"cayu:attention_handoff": False})
        await producer.handoff.reconcile_once()

    assert await states(sqlite_engine) == {}


async def test_receiver_that_was_down_is_repaired_by_one_pass(sqlite_engine: AsyncEngine, tmp_path: Path) -> None:
    app = handoff_app({"prod": point(sqlite_engine, "prod")})
    async with serving(app) as server, agent(tmp_path, server.url) as producer:
        port = int(server.url.rsplit(":", 1)[1])
        await server.__aexit__(None, None, None)
        await pause(producer.app, "tool_approval", "s-1")
        missed = await states(sqlite_engine)
        undelivered = await producer.undelivered()
        async with serving(app, port=port):
            await producer.handoff.reconcile_once()

    assert missed == {}
    assert set(undelivered) == {"failed"}
    assert await states(sqlite_engine) == {"s-1": ("tool_approval", "active", None)}


async def test_receiver_killed_between_observation_and_verify_settles_late_and_truly(
    migrated_sqlite_url: str, sqlite_engine: AsyncEngine, tmp_path: Path
) -> None:
    with receiver(migrated_sqlite_url) as first:
        async with agent(tmp_path, first.url) as producer:
            await pause(producer.app, "user_input", "s-1")
            first.kill()
            await producer.settle("s-1", "answer")
            between = await states(sqlite_engine)
            with receiver(migrated_sqlite_url, port=first.port):
                await producer.handoff.reconcile_once()

    assert between == {"s-1": ("user_input", "active", None)}
    assert await states(sqlite_engine) == {"s-1": ("user_input", "resolved", None)}


async def test_interrupted_scan_resumes_where_the_receiver_remembers(
    sqlite_engine: AsyncEngine, tmp_path: Path
) -> None:
    """Also: references over several pages, and a cursor that the runtime no longer takes."""
    app = handoff_app({"prod": point(sqlite_engine, "prod")})
    async with serving(app) as server, agent(tmp_path, server.url, page_size=1, max_pages=2) as producer:
        quiet = make_app(producer.store)  # pauses that no sink hands off
        for number in range(3):
            await pause(quiet, "user_input", f"s-{number}")
        base, headers = f"{server.url}/handoff/prod", {"Authorization": f"Bearer {TOKEN}"}
        passes = []
        for _ in range(2):
            await producer.handoff.reconcile_once()
            report = (await reports(sqlite_engine))["prod"]
            passes.append((report.pages, report.scan_complete, len(await states(sqlite_engine))))
        async with httpx.AsyncClient(headers=headers) as client:
            page = (await client.get(f"{base}/references", params={"limit": 2})).json()
            rest = (await client.get(f"{base}/references", params={"limit": 2, "after": page["next_after"]})).json()
            scan = {"cursor": "not-a-cursor", "complete": False}
            empty = {"observations": [], "protocol": "cayu.human-attention-handoff/v1", "runtime_version": "0.15.0"}
            await client.post(f"{base}/observations", json={**empty, "scan": scan})
        await producer.handoff.reconcile_once()
        reset = (await reports(sqlite_engine))["prod"]

    assert passes == [(2, False, 2), (1, True, 3)]
    listed = page["items"] + rest["items"]
    assert len({HumanAttentionReference.model_validate(item).session_id for item in listed}) == 3
    assert rest["next_after"] is None
    assert reset.issues == ("scan_cursor_reset",)


async def test_declined_token_is_dropped_by_the_sink_and_seen_by_the_pass(
    sqlite_engine: AsyncEngine, tmp_path: Path
) -> None:
    app = handoff_app({"prod": point(sqlite_engine, "prod")})
    async with serving(app) as server, agent(tmp_path, server.url, token="revoked") as producer:
        with pytest.raises(HumanAttentionHandoffError) as raised:
            await producer.handoff.reconcile_once()

    assert (raised.value.status, raised.value.code, raised.value.declined) == (401, "invalid_token", True)


async def test_ten_producers_of_one_namespace_at_once(postgres_engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(postgres_engine, "prod")})
    async with serving(app) as server:

        async def produce(number: int) -> None:
            client = HumanAttentionReceiver(url=f"{server.url}/handoff/prod", token=TOKEN)
            session_id = f"s-{number % 5}"  # two producers speak of each session, and say the same
            made = Reference("", session_id, "i", Kind.USER_INPUT, "a", None, None, 1)
            wire = {
                "attention_id": cayu_attention_id(made),
                "session_id": session_id,
                "session_instance_id": "i",
                "kind": "user_input",
                "action_id": "a",
                "round_id": None,
                "tool_call_id": None,
                "source_sequence": 1,
            }
            shown = {"agent_name": "worker", "requester_ref": None, "summary": "User input required."}
            opened = {"reference": wire, "state": "active", "reason": "current_action", **shown}
            scope = {"session_id": session_id, "complete": True}
            for _ in range(5):
                await client.observations([opened], session_scope=scope)
            answer = await client.observations([], session_scope=scope)
            assert answer["verify"] in ([wire], [])
            await client.observations([{"reference": wire, "state": "resolved", "reason": "durable_closure"}])

        await asyncio.gather(*(produce(number) for number in range(10)))

    assert {state for _, state, _ in (await states(postgres_engine)).values()} == {"resolved"}
    assert len(await states(postgres_engine)) == 5


@pytest.mark.parametrize("kind", list(Kind)[:3])
@pytest.mark.parametrize("tool_call_id", [None, "call-\u00fc\U0001f514"])
def test_identity_is_the_one_that_cayu_computes(kind: Kind, tool_call_id: str | None) -> None:
    made = Reference("", 's-\u00fc"\\', "instance", kind, "action/1", "round", tool_call_id, 7)

    HumanAttentionReference(
        attention_id=cayu_attention_id(made),
        session_id=made.session_id,
        session_instance_id=made.session_instance_id,
        kind=made.kind.value,
        action_id=made.action_id,
        round_id=made.round_id,
        tool_call_id=made.tool_call_id,
        source_sequence=7,
    )
