"""What the receiver answers when it is asked too much, cannot write now, or is stopping."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.clock import FrozenClock
from config.database import create_engine
from config.errors import SettingsError
from tests.support.databases import engine_for
from tests.support.handoff import TOKEN, active, body, complete, handoff_app, point, reference, sender, serving
from worker.web.bounded import bound_waits
from worker.web.guard import Limits
from worker.web.server import WebServer

HEADERS = {"Authorization": f"Bearer {TOKEN}"}
SHORT = timedelta(milliseconds=300)


@pytest.fixture
async def bounded_engine(engine: AsyncEngine) -> AsyncIterator[AsyncEngine]:
    """Return an engine as the web listener has it, with a short wait."""
    engine = bound_waits(create_engine(engine.url), SHORT)
    yield engine
    await engine.dispose()


async def test_locked_database_is_503_and_the_same_request_succeeds_later(bounded_engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(bounded_engine, "prod")})
    other = create_engine(bounded_engine.url)
    sent = body(active(reference()), **complete())
    async with sender(app, "prod") as client:
        async with other.begin() as writer:
            if other.dialect.name == "postgresql":
                await writer.execute(text("LOCK TABLE notifications"))
            busy = await client.post("observations", json=sent)
        again = await client.post("observations", json=sent)
    await other.dispose()

    assert (busy.status_code, busy.json()["detail"]["code"]) == (503, "database_busy")
    assert busy.headers["retry-after"]
    assert again.json() == {"accepted": 1, "verify": []}


async def test_missing_schema_is_our_trouble_and_drops_nothing(tmp_path: Path) -> None:
    engine = engine_for(f"sqlite:///{tmp_path / 'empty.db'}")
    app = handoff_app({"prod": point(engine, "prod")})

    async with sender(app, "prod") as client:
        answers = [
            await client.get("state"),
            await client.get("references"),
            await client.post("observations", json=body(active(reference()))),
        ]
    await engine.dispose()

    assert [answer.status_code for answer in answers] == [503, 503, 503]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic " + TOKEN},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer "},
    ],
)
async def test_wrong_token_and_unknown_namespace_look_the_same(
    sqlite_engine: AsyncEngine, headers: dict[str, str]
) -> None:
    app = handoff_app({"prod": point(sqlite_engine, "prod")})
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://handbell.test") as client:
        known = await client.get("/handoff/prod/state", headers=headers)
        unknown = await client.get("/handoff/none/state", headers=headers)
        right_elsewhere = await client.get("/handoff/none/state", headers=HEADERS)

    assert {answer.status_code for answer in (known, unknown, right_elsewhere)} == {401}
    assert known.json() == unknown.json() == right_elsewhere.json()
    assert TOKEN not in known.text


async def test_two_tokens_are_valid_while_one_replaces_the_other(sqlite_engine: AsyncEngine) -> None:
    digest = "sha256:b0a1bcd7dbc6f1bd10ba5cfcef2ed5dd57e9b8a9b1a7c8b4a4a1d6f8b7a0b7f1"
    app = handoff_app({"prod": point(sqlite_engine, "prod", tokens=["old", "new", digest])})
    statuses = {}
    for token in ("old", "new", "other", digest):
        async with sender(app, "prod", token) as client:
            statuses[token] = (await client.get("state")).status_code

    assert statuses == {"old": 200, "new": 200, "other": 401, digest: 401}


async def test_rate_limit_answers_429_until_the_bucket_fills(sqlite_engine: AsyncEngine) -> None:
    clock = FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))
    app = handoff_app({"prod": point(sqlite_engine, "prod", clock=clock, per_second=2)})
    async with sender(app, "prod") as client:
        first = [(await client.get("state")).status_code for _ in range(3)]
        await clock.advance(timedelta(seconds=1))
        second = [(await client.get("state")).status_code for _ in range(3)]

    assert (first, second) == ([200, 200, 429], [200, 200, 429])


async def test_too_large_body_is_413_whether_declared_or_not(sqlite_engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(sqlite_engine, "prod", limits=Limits(max_body_bytes=1000))})

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * 100

    async with serving(app) as server, httpx.AsyncClient(headers=HEADERS) as client:
        url = f"{server.url}/handoff/prod/observations"
        declared = await client.post(url, content=b" " * 1001)
        undeclared = await client.post(url, content=chunks())
        small = await client.post(url, json=body())

    assert [declared.status_code, undeclared.status_code, small.status_code] == [413, 413, 200]
    assert declared.json()["detail"]["code"] == "body_too_large"


async def test_slow_body_ends_before_the_client_would(sqlite_engine: AsyncEngine) -> None:
    limits = Limits(body_within=timedelta(milliseconds=50))
    app = handoff_app({"prod": point(sqlite_engine, "prod", limits=limits)})

    async with serving(app) as server:
        reader, writer = await asyncio.open_connection(port=int(server.url.rsplit(":", 1)[1]), host="127.0.0.1")
        head = f"POST /handoff/prod/observations HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\n"
        writer.write(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        answer = await reader.read()  # to the end: the connection is closed
        writer.close()

    assert answer.startswith(b"HTTP/1.1 408")
    assert b"body_too_slow" in answer


async def test_stop_answers_what_is_under_way_and_turns_the_rest_away(postgres_engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(postgres_engine, "prod")})
    async with httpx.AsyncClient(headers=HEADERS) as client:
        server = await WebServer(app, host="127.0.0.1", port=0).__aenter__()
        url = f"{server.url}/handoff/prod"
        async with postgres_engine.begin() as writer:
            await writer.execute(text("LOCK TABLE notifications"))
            under_way = asyncio.create_task(client.post(f"{url}/observations", json=body(active(reference()))))
            while not (await _waits_for_lock(writer)):
                pass
            stopping = asyncio.create_task(server.__aexit__(None, None, None))
            while not server.is_draining:
                await asyncio.sleep(0)
            late = await client.get(f"{url}/state")
        answered = await under_way
        await stopping
        with pytest.raises(httpx.ConnectError):
            await client.get(f"{url}/state")

    assert answered.json() == {"accepted": 1, "verify": []}
    assert (late.status_code, late.json()["detail"]["code"]) == (503, "shutting_down")
    assert late.headers["connection"] == "close"


async def _waits_for_lock(connection: AsyncConnection) -> bool:
    found = await connection.execute(text("SELECT count(*) FROM pg_locks WHERE NOT granted"))
    return bool(found.scalar_one())


async def test_address_in_use_is_one_clear_line(sqlite_engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(sqlite_engine, "prod")})
    async with serving(app) as server:
        port = int(server.url.rsplit(":", 1)[1])
        with pytest.raises(SettingsError, match=f"127.0.0.1:{port}"):
            async with serving(app, port=port):
                pass


async def test_what_is_not_there_is_refused_in_json(sqlite_engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(sqlite_engine, "prod")})
    async with sender(app, "prod") as client:
        missing = await client.get("nothing")
        slash = await client.get("state/")
        method = await client.put("state")

    assert [missing.status_code, slash.status_code, method.status_code] == [404, 404, 405]
    assert {answer.json()["detail"]["code"] for answer in (missing, slash)} == {"not_found"}
    assert "GET" in method.headers["allow"]
