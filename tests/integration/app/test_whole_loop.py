"""From a real agent's pause to a mail and a webhook, and back to settled: `handbell run`, from outside."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from cayu import CayuApp
from redis.asyncio import Redis

from sinks.emit.redis_stream import RedisStreamSink
from tests.support.listeners import ONCE_EACH, OPENED, OPENED_ONCE, Listeners
from tests.support.one_pause import SESSION, Agent, emit
from tests.support.product import Product, until
from worker.scripted.runtime import CONTENT_MARK, close_store, make_app, open_store, pause
from worker.scripted.settling import current_action, settle


@asynccontextmanager
async def living_agent(product: Product, store: Path) -> AsyncIterator[tuple[CayuApp, Any]]:
    """Give a Cayu application whose one tie to Handbell is the sink."""
    opened = open_store(str(store))
    sink = RedisStreamSink(product.redis_url, namespace="prod", timeout=10.0)
    try:
        yield make_app(opened, sinks=[sink]), opened
    finally:
        await sink.aclose()
        await close_store(opened)


async def test_real_pause_is_told_once_and_its_settlement_is_shown(
    product: Product, listeners: Listeners, agent: Agent
) -> None:
    product.configure(listeners.toml(agent.store))
    run = await product.started()

    async with living_agent(product, agent.store) as (app, store):
        await pause(app, "tool_approval", "deploy")
        await until(listeners.has_opened, run)
        await settle(app, await current_action(store, "deploy"), "deny")
        await until(listeners.has_settled, run)
        await until(product.is_quiet, run)

    assert listeners.counts() == ONCE_EACH
    assert product.states() == {"deploy": "cancelled"}
    everything = [mail.content.decode() for mail in listeners.mailbox.mails] + [
        one.body for one in listeners.webhook.tries
    ]
    assert not any(CONTENT_MARK in text for text in [*everything, run.stdout, run.stderr])
    assert await run.stop() == 0
    assert run.stdout.count("\n") >= 4
    assert "handbell.started" not in run.stdout


async def test_pause_while_handbell_is_down_is_found_at_the_start(
    product: Product, listeners: Listeners, agent: Agent
) -> None:
    agent.ask()
    product.configure(listeners.toml(agent.store))

    run = await product.started()
    await until(listeners.has_opened, run)

    assert product.states() == {SESSION: "active"}


async def test_restart_loses_nothing_and_repeats_nothing(
    product: Product, listeners: Listeners, agent: Agent, moments: Any
) -> None:
    product.configure(listeners.toml(agent.store))
    run = await product.started()
    agent.ask()
    await emit(product.redis_url, moments.opening)
    await until(listeners.has_opened, run)
    assert await run.stop() == 0

    agent.be_answered()
    run = await product.started()
    await until(listeners.has_settled, run)
    await until(product.is_quiet, run)
    assert await run.stop() == 0

    run = await product.started()
    await emit(product.redis_url, [*moments.opening, *moments.closing])
    await until(product.is_quiet, run)
    assert listeners.counts() == ONCE_EACH
    assert product.states() == {SESSION: "resolved"}


async def test_flushed_redis_loses_no_request(product: Product, listeners: Listeners, agent: Agent) -> None:
    """No hint is ever sent here, and the wire forgets everything again and again: the sweep finds both changes."""
    product.configure(listeners.toml(agent.store))
    run = await product.started()
    flushing = asyncio.create_task(_flush_again_and_again(product.redis_url))
    try:
        agent.ask()
        await until(listeners.has_opened, run)
        agent.be_answered()
        await until(listeners.has_settled, run)
        await until(product.is_quiet, run)
    finally:
        flushing.cancel()
    assert listeners.counts() == ONCE_EACH


async def _flush_again_and_again(url: str) -> None:
    async with Redis.from_url(url) as wire:
        while True:
            await wire.flushall()
            await asyncio.sleep(2.7)  # not in step with the ticks


async def test_unreachable_store_leaves_the_message_as_it_is_and_recovers(
    product: Product, listeners: Listeners, agent: Agent
) -> None:
    agent.ask()
    product.configure(listeners.toml(agent.store))
    run = await product.started()
    await until(listeners.has_opened, run)
    await until(product.is_quiet, run)

    agent.store.rename(agent.store.with_suffix(".away"))
    await until(lambda: product.states() == {SESSION: "unavailable"}, run)
    agent.ask()
    await until(lambda: product.states() == {SESSION: "active"}, run)

    assert listeners.counts() == OPENED_ONCE
    agent.be_answered()
    await until(listeners.has_settled, run)
    await until(product.is_quiet, run)
    assert listeners.counts() == ONCE_EACH


async def test_killed_process_takes_its_valkey_with_it(product: Product, listeners: Listeners, agent: Agent) -> None:
    product.configure(listeners.toml(agent.store))
    run = await product.started()
    (server,) = psutil.Process(run.pid).children()
    assert "valkey" in server.name()

    await run.kill()

    await until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_ends_it_quickly_with_0(product: Product, listeners: Listeners, agent: Agent, number: int) -> None:
    """Also while a source, a destination and the wire are at work."""
    agent.ask()
    product.configure(listeners.toml(agent.store))
    run = await product.started()
    await until(lambda: bool(listeners.webhook.tries), run)

    began = time.monotonic()
    run.send(signal.Signals(number))

    assert await run.ended() == 0
    assert time.monotonic() - began < 15
    assert "Traceback" not in run.stderr


async def test_webhook_that_hangs_does_not_hold_up_the_mail_nor_the_end(
    product: Product, listeners: Listeners, agent: Agent
) -> None:
    from worker.channels.testing.http_server import HANG

    listeners.webhook.faults.append(HANG)
    agent.ask()
    product.configure(listeners.toml(agent.store))
    run = await product.started()
    await until(lambda: bool(listeners.mails(is_settled=False)) and bool(listeners.webhook.tries), run)
    assert not listeners.events(OPENED)

    assert await run.stop() == 0
