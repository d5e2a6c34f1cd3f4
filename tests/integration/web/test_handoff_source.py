"""The handoff source: one that only pushes says how long its word counts; one with `ask_url` asks the real server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cayu.server import AuthContext, ServerConfig, create_server
from fastapi import HTTPException, Request
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from config.clock import FrozenClock
from reconciler.errors import SourceRefused, SourceUnavailable
from reconciler.references import Reference
from reconciler.sources.handoff import AskingHandoffSource, HandoffSource, Options, build
from reconciler.sources.protocol import Observes, PushOnly, RefreshesSessions, Scans
from reconciler.sources.services import SourceServices
from reconciler.states import Kind
from tests.support.handoff import serving
from worker.scripted.runtime import close_store, make_app, open_store, pause
from worker.scripted.settling import current_action, reference_of, settle

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLOCK = FrozenClock(NOW)


async def only_handbell(request: Request) -> AuthContext:
    if request.headers.get("authorization") != "Bearer ask-token":
        raise HTTPException(status_code=401, detail="no")
    return AuthContext(subject="handbell")


@asynccontextmanager
async def asking(url: str, token: str = "ask-token") -> AsyncIterator[AskingHandoffSource]:
    async with aiohttp.ClientSession() as http:
        options = Options.model_validate({"ask_url": url, "ask_token": token})
        source = build("prod", options, SourceServices(clock=CLOCK, folder=Path("/"), http=http))
        assert isinstance(source, AskingHandoffSource)
        yield source


def ours(exact: Any) -> Reference:
    fields = exact.model_dump(mode="json")
    return Reference(**{**fields, "kind": Kind(fields["kind"])})


async def test_source_that_can_be_asked_says_what_the_agents_server_says(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "cayu.db"))
    app = make_app(store)
    await pause(app, "tool_approval", "s-1")
    reference = ours(await reference_of(store, "s-1"))
    server = create_server(app, config=ServerConfig.protected(only_handbell))
    async with serving(server) as served, asking(served.url) as source:
        await source.check()
        before = await source.observe(reference)
        await settle(app, await current_action(store, "s-1"), "deny")
        after = await source.observe(reference)
        forged = await source.observe(
            Reference("attention_" + "0" * 64, "s-1", "i", Kind.USER_INPUT, "a", None, None, 1)
        )
        async with asking(served.url, "wrong") as stranger:
            refused = await stranger.observe(reference)
            with pytest.raises(SourceRefused, match="ask_token") as raised:
                await stranger.check()
    await close_store(store)

    assert (before.state, before.reason, before.observed_at) == ("active", "current_action", NOW)
    assert (after.state, after.reason, after.request) == ("cancelled", "durable_closure", None)
    assert (forged.state, forged.reason) == ("unavailable", "session_unavailable")
    assert (refused.state, refused.reason) == ("unavailable", "store_unavailable")
    assert served.url not in str(raised.value)


@pytest.mark.parametrize(
    "answer",
    [
        Response("{}"),
        Response("[" * 10_000),
        Response('{"attention_id": "attention_other", "state": "resolved", "reason": "durable_closure"}'),
        Response('{"attention_id": "attention_1", "state": "done", "reason": "durable_closure"}'),
        Response("", 302, {"Location": "http://127.0.0.1:9/"}),
        Response("down", 503),
    ],
)
async def test_answer_that_is_none_settles_nothing(answer: Response) -> None:
    async def route(_request: Any) -> Response:
        return answer

    app = Starlette(routes=[Route("/api/human-attention/{attention_id}", route)])
    async with serving(app) as served, asking(served.url) as source:
        observation = await source.observe(Reference("attention_1", "s", "i", Kind.USER_INPUT, "a"))
        with pytest.raises(SourceUnavailable):
            await source.check()

    assert (observation.state, observation.reason) == ("unavailable", "store_unavailable")


async def test_answer_that_comes_in_pieces_is_read_to_its_end() -> None:
    gave_one = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"attention_id": "attention_1", '
        await gave_one.wait()
        yield b'"state": "resolved", "reason": "durable_closure"}'

    async def route(_request: Any) -> Response:
        asyncio.get_running_loop().call_later(0.05, gave_one.set)
        return StreamingResponse(pieces())

    app = Starlette(routes=[Route("/api/human-attention/{attention_id}", route)])
    async with serving(app) as served, asking(served.url) as source:
        observation = await source.observe(Reference("attention_1", "s", "i", Kind.USER_INPUT, "a"))

    assert (observation.state, observation.reason) == ("resolved", "durable_closure")


async def test_server_that_is_not_there_settles_nothing() -> None:
    async with asking("http://127.0.0.1:9") as source:
        observation = await source.observe(Reference("attention_1", "s", "i", Kind.USER_INPUT, "a"))

    assert (observation.state, observation.reason) == ("unavailable", "store_unavailable")


async def test_source_without_ask_url_only_pushes() -> None:
    options = Options.model_validate({"fresh_for": "20m"})

    source = build("prod", options, SourceServices(clock=CLOCK, folder=Path("/")))

    assert isinstance(source, HandoffSource)
    assert isinstance(source, PushOnly)
    assert not isinstance(source, Observes | Scans | RefreshesSessions)
    assert source.fresh_for == timedelta(minutes=20)
    assert await source.identity() is None


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"ask_token": "x"}, "ask_url is not"),
        ({"fresh_for": "1m"}, "shorter than reconcile_every"),
        ({"fresh_for": "0s"}, "fresh_for"),
        ({"reconcile_every": "5s"}, "reconcile_every"),
        ({"ask_url": "file:///etc"}, "http"),
        ({"token": "x"}, "token"),
    ],
)
def test_wrong_option_is_refused(table: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Options.model_validate(table)
