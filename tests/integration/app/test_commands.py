"""What the commands say, to people and to scripts: the keys are those of the documented surface, `--json` is alone."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sinks.emit.names import STREAM
from tests.support.forking_door import ROOT
from tests.support.listeners import Listeners
from tests.support.one_pause import SESSION, Agent, Moments, emit
from tests.support.product import PATIENCE_SECONDS, Product, until

NOTIFICATION_KEYS = [
    "namespace",
    "attention_id",
    "kind",
    "summary",
    "session_id",
    "agent_name",
    "requester",
    "state",
    "reason",
    "dismissed",
    "first_seen_at",
    "state_changed_at",
]
DELIVERY_KEYS = [
    "id",
    "namespace",
    "attention_id",
    "destination",
    "channel",
    "recipient",
    "purpose",
    "status",
    "attempts",
    "reason",
    "provider_ref",
    "next_attempt_at",
]
STATUS_KEYS = {"notifications", "inbox", "deliveries", "sources", "sweeps", "destinations", "notices"}
STATES = {"active", "unavailable", "resolved", "cancelled", "superseded", "expired"}
STATUSES = {"pending", "leased", "sent", "unknown", "dead", "cancelled"}


@pytest.fixture
async def swept(product: Product, listeners: Listeners, agent: Agent) -> Product:
    """Give a product that is not running, whose one request is enrolled and not yet told of."""
    agent.ask()
    product.configure(listeners.toml(agent.store))
    migrated = await product.do("migrate")
    assert migrated.code == 0
    assert str(product.database) in migrated.stdout
    swept = await product.do("sweep")
    assert (swept.code, swept.stderr) == (0, "")
    assert swept.stdout.startswith("prod: 1 pages, 1 rows, 1 changed")
    return product


async def test_migrate_twice_has_nothing_to_do(product: Product) -> None:
    assert "0001" in (await product.do("migrate")).stdout
    assert "nothing to do" in (await product.do("migrate")).stdout


async def test_json_has_the_documented_keys(swept: Product) -> None:
    (notification,) = await swept.json("notifications")
    deliveries = await swept.json("deliveries")
    (status,) = await swept.json("status")

    assert list(notification) == NOTIFICATION_KEYS
    assert (notification["session_id"], notification["state"], notification["dismissed"]) == (SESSION, "active", False)
    assert notification["summary"] == "User input required."
    assert {tuple(delivery) for delivery in deliveries} == {tuple(DELIVERY_KEYS)}
    assert {delivery["destination"] for delivery in deliveries} == {"mail", "hook"}
    assert set(status) == STATUS_KEYS
    assert set(status["notifications"]) == STATES
    assert set(status["deliveries"]) == STATUSES
    assert status["notifications"]["active"] == 1
    assert status["deliveries"]["pending"] == 2
    (source,) = status["sources"]
    assert (source["namespace"], source["type"]) == ("prod", "cayu")
    assert status["sweeps"][0]["complete"] is True
    assert {destination["name"] for destination in status["destinations"]} == {"mail", "hook"}


async def test_lists_are_filtered(swept: Product) -> None:
    (notification,) = await swept.json("notifications", "--state", "active", "--namespace", "prod")

    assert await swept.json("notifications", "--state", "resolved") == []
    assert await swept.json("notifications", "--namespace", "other") == []
    assert len(await swept.json("deliveries", "--attention", notification["attention_id"])) == 2
    assert await swept.json("deliveries", "--namespace", "other") == []
    story = await swept.json("deliveries", "--attention", notification["attention_id"], "--why")
    assert story
    for wrong in (
        ("notifications", "--state", "open"),
        ("deliveries", "--why"),
        ("deliveries", "--attention", "attention_no"),
        ("sweep", "--namespace", "other"),
    ):
        run = await swept.do(*wrong)
        assert run.code == 2, wrong
        run.problem()


async def test_tables_for_people_show_the_same(swept: Product) -> None:
    for command in ("status", "notifications", "deliveries"):
        run = await swept.do(command)
        assert (run.code, run.stderr) == (0, ""), command
        assert "prod" in run.stdout or "mail" in run.stdout


async def test_check_tries_everything_and_tells_nobody(swept: Product, listeners: Listeners, agent: Agent) -> None:
    good = await swept.do("check")
    agent.store.rename(agent.store.with_suffix(".away"))
    bad = await swept.do("check")

    assert good.code == 0, good.stdout
    for what in ("database", "redis", "source prod", "destination mail", "destination hook"):
        assert f"ok   {what}: " in good.stdout
    assert bad.code == 1
    assert "BAD  source prod: " in bad.stdout
    assert "Traceback" not in bad.stderr
    assert listeners.counts() == {"hook": (0, 0), "mail": (0, 0)}


async def test_sweep_of_a_store_that_is_gone_makes_the_request_unavailable(swept: Product, agent: Agent) -> None:
    agent.store.rename(agent.store.with_suffix(".away"))

    run = await swept.do("sweep")

    assert run.code == 2
    assert str(agent.store) in run.problem()
    assert swept.states() == {SESSION: "unavailable"}


async def test_sweep_goes_on_after_a_source_that_cannot_be_read(swept: Product, agent: Agent) -> None:
    toml = (swept.folder / "handbell.toml").read_text()
    swept.configure(toml + '[[sources]]\nnamespace = "absent"\ntype = "cayu"\nstore = "sqlite:///absent.db"\n')
    agent.be_answered()

    run = await swept.do("sweep")

    assert run.code == 2
    assert "absent.db" in run.problem()
    assert swept.states() == {SESSION: "resolved"}


async def test_head_sweep_is_not_complete_and_succeeds(swept: Product) -> None:
    run = await swept.do("sweep", "--head")

    assert run.code == 0
    assert ": head" in run.stdout


async def test_malformed_entries_are_kept_and_shown_and_stop_nobody(product: Product, moments: Moments) -> None:
    import redis as redis_sync

    product.environment = {"HANDBELL_WEB__LISTEN": "127.0.0.1:0", "HANDBELL_WEB__ADMIN_LISTEN": "127.0.0.1:0"}
    run = await product.started()
    good: dict[Any, Any] = {"v": "1", "namespace": "prod", "session_id": "s", "event_id": "e", "type": "session.failed"}
    good["occurred_at"] = "2026-03-01T12:00:00Z"
    bad = [
        {"v": "1"},
        {**good, "v": "2"},
        {**good, "session_id": b"\xff\xfe"},
        {**good, "session_id": "a\0b"},
        {**good, "session_id": "x" * 1_000_000},
        {**good, "occurred_at": "yesterday"},
    ]
    with redis_sync.Redis.from_url(product.redis_url) as wire:
        for entry in bad:
            wire.xadd(STREAM, entry)
    await emit(product.redis_url, moments.opening)
    await until(lambda: len(product.rows("SELECT id FROM inbox_dead")) == len(bad), run)

    letters = await product.json("inbox", "dead")

    assert len(letters) == len(bad)
    assert all(set(letter) >= {"received_at", "stream_id", "reason"} for letter in letters)
    table = await product.do("inbox", "dead")
    assert table.code == 0
    assert max(map(len, table.stdout.splitlines())) < 300
    assert await run.stop() == 0


async def test_redrive_says_what_it_did(swept: Product) -> None:
    assert (await swept.do("redrive", "--all-dead")).stdout.startswith("0 deliveries")
    assert (await swept.do("redrive", "1")).code == 2
    assert (await swept.do("redrive")).code == 2
    for wrong in (("9" * 30,), ("--destination", "nobody")):
        done = await swept.do("redrive", *wrong)
        assert (done.code, "Traceback" in done.stderr) == (2, False)


async def test_unknown_command_is_exit_2_and_help_is_0(product: Product) -> None:
    assert (await product.do("nonsense")).code == 2
    assert (await product.do()).code == 2
    helped = await product.do("--help")
    assert helped.code == 0
    for command in ("demo", "run", "sink", "work", "web", "migrate", "check", "sweep", "status", "notifications"):
        assert command in helped.stdout
    for command in ("deliveries", "inbox", "redrive", "sources"):
        assert command in helped.stdout


def test_module_runs_as_the_script_does(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "handbell", "status", "--json"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}

    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert "handbell migrate" in ended.stderr
    assert PATIENCE_SECONDS >= 60


def test_demo_ends_well(tmp_path: Path) -> None:
    """The promise of the first page: each state as expected, each destination told once of each."""
    command = [sys.executable, str(ROOT / "handbell.py"), "demo"]

    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110, stdin=subprocess.DEVNULL)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    for state in ("resolved", "superseded", "cancelled"):
        assert state in ended.stdout
    assert ended.stdout.count("1 opening, 1 settled") == 8
    assert list(tmp_path.iterdir()) == []
