"""What people say through the command line: acknowledge, dismiss, silence, audit; and routes that are reloaded."""

import signal
from collections.abc import Sequence

import pytest

from config.clock import SystemClock
from reconciler.notifications import Notifications
from reconciler.reasons import Door
from reconciler.references import Request
from reconciler.routes import Match, Route, Routing, Target
from reconciler.states import AttentionState
from tests.support.databases import engine_for
from tests.support.product import Product
from tests.support.scripted_source import observed

TOML = """
[database]
url = "sqlite:///handbell.db"

[channels.ops]
type = "console"

[channels.night]
type = "console"

[[routes]]
notify = ["ops"]
"""
OPS = Routing((Route("routes[0]", Match(), ("ops",)),), {"ops": Target("ops", "console", ("ops",))})


async def see(product: Product, names: Sequence[str], namespace: str = "prod") -> None:
    """Let requests be seen, as a source would."""
    engine = engine_for(f"sqlite:///{product.folder / 'handbell.db'}")
    clock = SystemClock()
    notifications = Notifications(engine, clock, lambda: OPS)
    seen = [observed(name, AttentionState.ACTIVE, clock.now(), Request(agent_name="billing")) for name in names]
    await notifications.apply(namespace, seen, door=Door.SWEEP)
    await engine.dispose()


@pytest.fixture
async def house(product: Product) -> Product:
    product.configure(TOML)
    await product.do("migrate")
    await see(product, ["a", "b"])
    return product


async def test_acknowledged_request_waits_and_the_audit_says_who(house: Product) -> None:
    done = await house.do("ack", "a", "--for", "1h")

    assert (done.code, done.stdout.startswith("a: acknowledged until ")) == (0, True), done.stderr
    by_request = {row["attention_id"]: row for row in await house.json("deliveries")}
    assert (by_request["a"]["reason"], by_request["b"]["reason"]) == ("acknowledged", "routed")
    assert by_request["a"]["next_attempt_at"] > by_request["b"]["next_attempt_at"]
    [entry] = await house.json("audit")
    assert (entry["action"], entry["subject"]) == ("ack", "prod/a")
    assert entry["actor"]


async def test_dismissed_request_is_marked_and_comes_back_when_undone(house: Product) -> None:
    await house.do("dismiss", "a", "--because", "a test run")
    dismissed = {row["attention_id"]: row["dismissed"] for row in await house.json("notifications")}
    cancelled = [row for row in await house.json("deliveries", "--attention", "a") if row["status"] == "cancelled"]
    await house.do("dismiss", "a", "--undo")

    assert dismissed == {"a": True, "b": False}
    assert [row["reason"] for row in cancelled] == ["dismissed"]
    [row] = await house.json("deliveries", "--attention", "a")
    assert (row["status"], row["reason"]) == ("pending", "routed")
    assert [entry["action"] for entry in await house.json("audit")] == ["dismiss", "undo_dismiss"]


async def test_silence_is_listed_holds_and_ends(house: Product) -> None:
    added = await house.do("silence", "add", "--for", "2h", "--because", "release", "--agent", "bill*")
    [listed] = await house.json("silence", "list")
    held = {row["reason"] for row in await house.json("deliveries")}
    ended = await house.do("silence", "end", str(listed["id"]))

    assert added.stdout == f"silence {listed['id']}: agent=bill*; 2 open requests fit\n"
    assert (listed["match"], listed["because"]) == ({"agent": ["bill*"]}, "release")
    assert held == {"silenced"}
    assert ended.code == 0
    assert await house.json("silence", "list") == []
    assert {row["reason"] for row in await house.json("deliveries")} == {"routed"}
    assert [entry["action"] for entry in await house.json("audit")] == ["silence", "end_silence"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("ack", "nobody", "--for", "1h"), ("nobody",)),
        (("ack", "c", "--for", "1h"), ("c", "prod", "test")),
        (("dismiss", "a"), ("--because",)),
        (("silence", "add", "--for", "1h", "--because", "x"), ("--all",)),
        (("silence", "add", "--for", "1h", "--because", "x", "--kind", "tool_aproval"), ("kind", "tool_approval")),
        (("silence", "add", "--for", "1h", "--because", "x", "--label", "team"), ("--label", "NAME=GLOB")),
        (("silence", "end", "7"), ("7", "silence list")),
        (("simulate", "--routes", "none.toml", "--states", "none.json"), ("none.toml",)),
        (("simulate", "--routes", "handbell.toml", "--recorded", "--until", "tomorrow"), ("--until",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
async def test_what_cannot_be_done_is_one_line(
    house: Product, arguments: tuple[str, ...], named: tuple[str, ...]
) -> None:
    await see(house, ["c"])
    await see(house, ["c"], "test")

    run = await house.do(*arguments)

    assert run.code == 2
    line = run.problem()
    assert all(name in line for name in named), line


async def test_recorded_changes_can_be_played_by_other_routes(house: Product) -> None:
    (house.folder / "routes.toml").write_text('[[routes]]\nnotify = ["night"]\n')

    lines = await house.json("simulate", "--routes", "routes.toml", "--recorded")

    told = [(line["destination"], line["attention_ids"]) for line in lines if line["what"] == "told"]
    assert told == [("night", ["a"]), ("night", ["b"])]


async def test_hangup_takes_new_routes_or_says_exactly_why_not(product: Product) -> None:
    embedded = TOML.replace('[database]\nurl = "sqlite:///handbell.db"\n', "")
    product.configure(embedded)
    run = await product.started()

    product.configure(embedded.replace('notify = ["ops"]', 'notify = ["opps"]'))
    run.send(signal.SIGHUP)
    await run.said("settings.not_reloaded")
    product.configure(embedded.replace('notify = ["ops"]', 'notify = ["night"]') + '\n[log]\nlevel = "debug"\n')
    run.send(signal.SIGHUP)
    await run.said("settings.reloaded")
    await run.said("routes.replanned")

    refused = next(line for line in run.stderr.splitlines() if "settings.not_reloaded" in line)
    assert "routes[0].notify" in refused
    assert "opps" in refused
    assert any("settings.need_a_restart" in line and "log" in line for line in run.stderr.splitlines())
    assert await run.stop() == 0
