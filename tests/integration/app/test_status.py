"""`handbell status` and `handbell cayu fanout` from outside: each command a process of its own on one configuration."""

from datetime import timedelta
from pathlib import Path

import pytest
from cayu.events import Event
from cayu.observability import EventSink

from config.loading import load_configuration
from reconciler.errors import SourceRefused
from sinks.emit.redis_stream import RedisStreamSink
from tests.support.cayu_stores import CayuStore
from tests.support.product import Product
from tests.support.sources import cayu_source, shown
from worker.app import open_core
from worker.embedded import EmbeddedValkey
from worker.scripted.runtime import close_store, make_app, open_store, pause

SECRET = "hunter2-in-an-exception"


def toml(store: str, more: str = "", *, redis: str | None = None) -> str:
    database = '[database]\nurl = "sqlite:///handbell.db"\n'
    wire = f'[redis]\nurl = "{redis}"\n' if redis else ""
    return f'{database}{wire}[[sources]]\nnamespace = "prod"\ntype = "cayu"\nstore = "{store}"\n{more}'


async def test_first_boundary_stands_in_every_process_and_after_every_restart(
    product: Product, cayu_store: CayuStore
) -> None:
    source = cayu_source(cayu_store.url)
    everything = await shown(source)
    await source.close()
    paused = sorted(item.request.paused_at for item in everything.values() if item.request and item.request.paused_at)
    boundary, later = paused[2], paused[-1] + timedelta(hours=1)

    product.configure(toml(cayu_store.url, f"enroll_after = {boundary.isoformat()}"))
    await product.do("migrate")
    first = await product.do("sweep")
    product.configure(toml(cayu_store.url, f"enroll_after = {later.isoformat()}"))
    second = await product.do("sweep")
    product.configure(toml(cayu_store.url))
    third = await product.do("sweep")
    [status] = await product.json("status")

    assert [run.code for run in (first, second, third)] == [0, 0, 0], first.stderr
    [shown_source] = status["sources"]
    assert shown_source["enrolled_after"] == boundary.isoformat()
    assert status["notifications"]["active"] == len(paused) - 2


async def test_two_first_starts_with_different_boundaries_do_not_both_go_on(
    product: Product, cayu_store: CayuStore
) -> None:
    product.configure(toml(cayu_store.url, "enroll_after = 2026-01-01T00:00:00Z"))
    await product.do("migrate")
    file = product.folder / "handbell.toml"
    ours = load_configuration(file)
    product.configure(toml(cayu_store.url, "enroll_after = 2026-06-01T00:00:00Z"))
    theirs = load_configuration(file)

    async with open_core(ours) as first, open_core(theirs) as second:
        await first.book.recheck("prod")
        with pytest.raises(SourceRefused, match="start this one again"):
            await second.book.recheck("prod")
        assert second.book.believed("prod") is None
    async with open_core(theirs) as again:
        await again.book.recheck("prod")


@pytest.mark.parametrize("where", ["configured", "embedded"])
async def test_status_shows_what_recovery_loops_report_and_works_without_redis(
    where: str, product: Product, valkey_url: str, cayu_store: CayuStore
) -> None:
    product.configure(toml(cayu_store.url, redis=valkey_url if where == "configured" else None))
    await product.do("migrate")
    [before] = await product.json("status")

    async def report(url: str) -> str:
        sink = RedisStreamSink(url, namespace="prod", timeout=10.0)
        await sink.report_recovery("skipped", recovered=0, state={"outstanding": 3, "dead_lettered": 1})
        await sink.report_recovery("recovered", recovered=2, state={"outstanding": 1, "dead_lettered": 1})
        await sink.aclose()
        [status] = await product.json("status")
        assert status["sources"][0]["recovery"] == {
            "rounds_skipped": 1,
            "rounds_recovered": 1,
            "recovered": 2,
            "outstanding": 1,
            "dead_lettered": 1,
            "last_outcome": "recovered",
        }
        return (await product.do("status")).stdout

    if where == "configured":
        text = await report(valkey_url)
    else:
        async with EmbeddedValkey(product.state_dir) as server:
            text = await report(server.url)
        [gone] = await product.json("status")
        assert gone["sources"][0]["recovery"] is None
    assert before["sources"][0]["recovery"] is None
    assert "prod: recovery loop: " in text


async def test_status_shows_the_way_to_a_child_that_the_scope_leaves_out(
    product: Product, cayu_store: CayuStore
) -> None:
    product.configure(toml(cayu_store.url, 'scope = { parents = ["parent"] }'))
    await product.do("migrate")
    await product.do("sweep")

    run = await product.do("status")

    assert "prod: parent waits on its child " in run.stdout
    assert product.states() == {}


class BrokenSink(EventSink):
    async def emit(self, event: Event) -> None:
        raise RuntimeError(f"redis down password={SECRET}")


async def test_fanout_says_what_is_undelivered_and_what_to_fix_and_changes_nothing(
    product: Product, tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "cayu.db"))
    await pause(make_app(store, sinks=[BrokenSink()]), "user_input", "unheard")
    before = await store.get_persisted_event_side_effect_health()
    product.configure(toml(str(tmp_path / "cayu.db")))
    await product.do("migrate")

    [said] = await product.json("cayu", "fanout", "--namespace", "prod")
    text = await product.do("cayu", "fanout")

    after = await store.get_persisted_event_side_effect_health()
    await close_store(store)
    assert before.failed_retryable == after.failed_retryable == said["health"]["failed_retryable"] > 0
    assert {row["status"] for row in said["rows"]} == {"failed"}
    assert (said["namespace"], said["has_more"]) == ("prod", False)
    assert "prod: " in text.stdout
    assert "unheard" in text.stdout
    assert not any(SECRET in everything for everything in (str(said), text.stdout, text.stderr))


@pytest.mark.parametrize(
    ("sources", "arguments", "said"),
    [
        ("", (), "no source is of type cayu or cayu-http"),
        ('[[sources]]\nnamespace = "pushed"\ntype = "handoff"\n', ("--namespace", "pushed"), "is of type handoff"),
        ('[[sources]]\nnamespace = "pushed"\ntype = "handoff"\n', ("--namespace", "other"), "'other'"),
    ],
)
async def test_fanout_that_cannot_be_read_is_one_line(
    product: Product, sources: str, arguments: tuple[str, ...], said: str
) -> None:
    product.configure(f'[database]\nurl = "sqlite:///handbell.db"\n{sources}')
    await product.do("migrate")

    run = await product.do("cayu", "fanout", *arguments)

    assert run.code == 2
    assert said in run.problem()
