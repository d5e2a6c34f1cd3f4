"""A protected Cayu server recovers a failed delivery through the sink by itself, and closes its store."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cayu import server as cayu_server
from cayu.server import AuthContext, ServerConfig, create_server

from config.clock import FrozenClock
from sinks.emit.redis_stream import RedisStreamSink
from tests.support.answering import Answering, answering
from worker.scripted.runtime import make_app, open_store, pause

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


async def nobody() -> AuthContext:
    """The server's authentication, which this test never asks."""
    return AuthContext(subject="alice@example.com")


async def received(consumer: Answering, count: int) -> None:
    async with asyncio.timeout(20):
        while len(consumer.entries) < count:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("moment", ["start", "timer"])
async def test_server_recovers_a_failed_delivery(
    moment: str, valkey_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cayu_server, "_PERSISTED_EVENT_SIDE_EFFECT_RECOVERY_INTERVAL_SECONDS", 0.05)
    clock = FrozenClock(AT)
    store = open_store(str(tmp_path / "cayu.db"), ownership_clock=clock.now)
    sink = RedisStreamSink(valkey_url, namespace="prod", timeout=5.0)
    failing = RedisStreamSink("unix:///nowhere", namespace="prod")
    await pause(make_app(store, sinks=[failing]), "user_input", "s-1")
    app = make_app(store, sinks=[sink], owned_resources=(store,))
    server = create_server(app, config=ServerConfig.protected(nobody))

    async with answering(valkey_url) as consumer:
        if moment == "start":
            await clock.advance(timedelta(seconds=30))
        async with server.router.lifespan_context(server):
            if moment == "timer":
                assert consumer.entries == []
                await clock.advance(timedelta(seconds=30))
            await received(consumer, 3)

    assert {entry["session_id"] for entry in consumer.entries} == {"s-1"}
    with pytest.raises(Exception, match=r"(?i)clos"):
        await store.load("s-1")
    await sink.aclose()
