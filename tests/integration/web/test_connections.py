"""What a stranger can hold open at the listener: for how long, and how many."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.support.handoff import TOKEN, handoff_app, point
from worker.web.server import WebServer

HEAD = b"GET /handoff/prod/state HTTP/1.1\r\nHost: h\r\n"
AUTHORIZED = HEAD + f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
UNREAD = b"POST /handoff/prod/observations HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n"
SHORT = timedelta(milliseconds=100)


@pytest.fixture
async def server(sqlite_engine: AsyncEngine) -> AsyncIterator[WebServer]:
    """Give a listener that waits a tenth of a second for a request, and takes three connections."""
    app = handoff_app({"prod": point(sqlite_engine, "prod")})
    async with WebServer(app, host="127.0.0.1", port=0, max_connections=3, request_within=SHORT) as server:
        yield server


async def connect(server: WebServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(server.url.rsplit(":", 1)[1]))


@pytest.mark.parametrize("sent", [b"", HEAD, UNREAD], ids=["nothing", "half a head", "a body that nobody reads"])
async def test_connection_without_a_request_is_let_go_however_it_trickles(server: WebServer, sent: bytes) -> None:
    reader, writer = await connect(server)
    writer.write(sent)
    is_over = asyncio.create_task(reader.read())
    async with asyncio.timeout(10):
        while not is_over.done():
            if sent:
                writer.write(b"x")
            await asyncio.wait({is_over}, timeout=0.02)

    assert is_over.exception() is None or isinstance(is_over.exception(), ConnectionError)
    writer.close()


async def test_connections_of_strangers_do_not_keep_a_sender_out(server: WebServer) -> None:
    strangers = [await connect(server) for _ in range(6)]
    async with asyncio.timeout(10):
        await asyncio.gather(*(reader.read() for reader, _ in strangers), return_exceptions=True)
        reader, writer = await connect(server)
        writer.write(AUTHORIZED)
        answer = await reader.readline()

    assert answer.startswith(b"HTTP/1.1 200")
    for _, opened in [*strangers, (reader, writer)]:
        opened.close()


async def test_more_connections_than_the_bound_are_closed_at_once(sqlite_engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(sqlite_engine, "prod")})
    async with WebServer(app, host="127.0.0.1", port=0, max_connections=2) as server:
        held = [await connect(server) for _ in range(2)]
        reader, writer = await connect(server)
        async with asyncio.timeout(10):
            said = await reader.read()

        for _, opened in [*held, (reader, writer)]:
            opened.close()

    assert said == b""
