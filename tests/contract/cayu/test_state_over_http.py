"""The exact state over an agent's protected server: what a receiver that holds a reference may ask, and is told."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from cayu.server import AuthContext, ServerConfig, create_server
from fastapi import HTTPException, Request

from reconciler.references import Reference
from tests.contract.cayu.conftest import Case
from tests.support.sources import shown
from worker.scripted.runtime import CONTENT_MARK

TENANTS = {"Bearer operator": None, "Bearer acme": "acme"}
NOBODY_KNOWS = ("unavailable", "session_unavailable")


async def _who(request: Request) -> AuthContext:
    token = request.headers.get("authorization", "")
    if token not in TENANTS:
        raise HTTPException(status_code=401, detail="no")
    return AuthContext(subject="handbell", tenant=TENANTS[token])


@dataclass
class Agent:
    """A client of the server, and the question of the session `ask`."""

    client: httpx.AsyncClient
    question: Reference
    case: Case

    async def ask(self, *, attention_id: str | None = None, token: str = "operator", **changed: str) -> httpx.Response:
        """Ask about the question, with some fields changed."""
        fields = {
            "session_id": self.question.session_id,
            "session_instance_id": self.question.session_instance_id,
            "kind": self.question.kind.value,
            "action_id": self.question.action_id,
            "source_sequence": str(self.question.source_sequence),
            "round_id": self.question.round_id,
            "tool_call_id": self.question.tool_call_id,
        }
        params = {name: value for name, value in (fields | changed).items() if value is not None}
        path = f"/api/human-attention/{attention_id or self.question.attention_id}"
        return await self.client.get(path, params=params, headers={"authorization": f"Bearer {token}"})


@pytest.fixture
async def agent(paused: Case) -> AsyncIterator[Agent]:
    """Serve the paused store in this process."""
    question = (await shown(paused.source))["ask"].reference
    async with paused.store.runtime() as (_store, app):
        server = create_server(app, config=ServerConfig.protected(_who))
        transport = httpx.ASGITransport(server)
        async with httpx.AsyncClient(transport=transport, base_url="http://agent") as client:
            yield Agent(client, question, paused)


def told(response: httpx.Response) -> tuple[str, str]:
    body = response.json()
    return body["state"], body["reason"]


async def test_server_says_what_the_store_says_and_lets_nobody_keep_it(agent: Agent) -> None:
    response = await agent.ask()
    seen = await agent.case.source.observe(agent.question)

    assert (response.status_code, response.headers["cache-control"]) == (200, "private, no-store")
    assert set(response.json()) == {"attention_id", "state", "observed_at", "reason"}
    assert told(response) == (seen.state, seen.reason) == ("active", "current_action")
    assert CONTENT_MARK not in response.text


async def test_unknown_forged_and_foreign_references_get_one_answer(agent: Agent) -> None:
    answers = [
        told(await agent.ask(session_id="no-such-session")),
        told(await agent.ask(session_id="cayu_session_no_such_alias")),
        told(await agent.ask(attention_id="attention_" + "0" * 64)),
        told(await agent.ask(session_instance_id="another")),
        told(await agent.ask(token="acme")),
    ]

    assert set(answers) == {NOBODY_KNOWS}


async def test_nobody_reads_without_the_servers_authentication(agent: Agent) -> None:
    exact = await agent.ask(token="nobody")
    pages = await agent.client.get("/api/pending-actions", headers={"authorization": "Bearer nobody"})

    assert (exact.status_code, pages.status_code) == (401, 401)


async def test_pages_carry_identities_and_public_names_but_no_reference(agent: Agent) -> None:
    response = await agent.client.get("/api/pending-actions", headers={"authorization": "Bearer operator"})

    actions: list[dict[str, Any]] = response.json()["actions"]
    [question] = [action for action in actions if action["attention_id"] == agent.question.attention_id]
    assert question["input_id"] != agent.question.action_id
    assert agent.question.action_id not in response.text
    assert agent.question.session_instance_id not in response.text


async def test_asking_answers_nothing(agent: Agent) -> None:
    await agent.ask()

    assert told(await agent.ask()) == ("active", "current_action")


async def test_liveness_is_open_and_knows_of_no_request(agent: Agent) -> None:
    response = await agent.client.get("/api/health")

    assert response.status_code == 200
    assert agent.question.attention_id not in response.text
    assert "ask" not in response.json().values()
