"""The admin listener: what it says of health, readiness and numbers, and that no identity is among them."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock
from config.errors import DependencyError
from reconciler.errors import SourceUnavailable
from reconciler.handoff_store import HandoffStore, Report
from reconciler.namespaces import Namespaces
from reconciler.sources.handoff import HandoffSource, Options
from sinks.tables import INBOX
from tests.support.databases import engine_for
from tests.support.handoff import active, body, handoff_app, point, reference, sender, verified
from worker.gauges import read_gauges
from worker.metrics import GAUGES, HANDOFF_REPORT_AGE, SWEEP_OVERDUE, Metrics, Sample
from worker.web.admin import Admin
from worker.web.readiness import Dependency, Readiness

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def no_gauges() -> list[Sample]:
    return []


def admin(readiness: Readiness, *, is_stopping: bool = False) -> httpx.AsyncClient:
    app = Admin(readiness, Metrics(), no_gauges, is_stopping=lambda: is_stopping).app()
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://admin.test")


async def passes() -> None:
    return


def fails(error: Exception) -> Callable[[], Awaitable[None]]:
    async def check() -> None:
        raise error

    return check


async def hangs() -> None:
    await asyncio.Event().wait()


async def test_ready_while_every_required_dependency_answers() -> None:
    down = Dependency("source prod", fails(SourceUnavailable("x", "the store does not answer")), is_required=False)
    readiness = Readiness([Dependency("database", passes), down], FrozenClock(NOW))

    async with admin(readiness) as client:
        answer = await client.get("/readyz")

    assert answer.status_code == 200
    assert answer.json()["dependencies"][1] == {
        "name": "source prod",
        "ok": False,
        "required": False,
        "reason": "the store does not answer",
    }


async def test_not_ready_says_why_without_a_secret() -> None:
    dependencies = [
        Dependency("database", fails(DependencyError("the database handbell at db does not answer: is it running?"))),
        Dependency("redis", fails(RuntimeError("redis://user:hunter2@redis/0"))),
        Dependency("slow", hangs),
    ]
    readiness = Readiness(dependencies, FrozenClock(NOW), within=timedelta(milliseconds=20))

    async with admin(readiness) as client:
        answer = await client.get("/readyz")
        health = await client.get("/healthz")

    assert (answer.status_code, health.status_code) == (503, 200)
    assert [item["reason"] for item in answer.json()["dependencies"]] == [
        "the database handbell at db does not answer: is it running?",
        "failed: RuntimeError",
        "no answer within 0.02 s",
    ]


async def test_probe_after_probe_asks_a_dependency_once_in_a_while() -> None:
    clock = FrozenClock(NOW)
    asked: list[int] = []

    async def check() -> None:
        asked.append(1)

    readiness = Readiness([Dependency("database", check)], clock)
    await asyncio.gather(readiness.findings(), readiness.findings())
    await clock.advance(timedelta(seconds=6))
    await readiness.findings()

    assert len(asked) == 2


async def test_stopping_process_is_alive_but_not_ready() -> None:
    async with admin(Readiness([], FrozenClock(NOW)), is_stopping=True) as client:
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get("/healthz")).status_code == 200


async def test_metrics_show_what_waits_and_no_identity(engine: AsyncEngine) -> None:
    clock = FrozenClock(NOW)
    app = handoff_app({"prod": point(engine, "prod", clock=clock)})
    report = {"issues": [], "observed": 2, "pages": 1, "scan_complete": True, "verify_complete": True}
    async with sender(app, "prod") as client:
        await client.post("observations", json=body(active(reference(1)), active(reference(2))))
        await client.post("observations", json=body(verified(reference(2), "resolved")))
        await client.post("reconciliations", json={**body(), **report} | {"observations": 0})
        head = {key: value for key, value in body().items() if key != "observations"}
        await client.post("reconciliations", json={**head, **report})
    async with engine.begin() as connection:
        hint = {"namespace": "prod", "session_id": "s-1", "event_id": "e", "event_type": "t"}
        await connection.execute(insert(INBOX).values(**hint, occurred_at=NOW, received_at=NOW))
    await clock.advance(timedelta(seconds=90))
    counted = Metrics()
    counted.handed_off("state", 200)
    counted.refreshed("complete", timedelta(seconds=1))
    counted.swept("full", "incomplete", timedelta(seconds=1))
    counted.attempted("slack", "temporary", "rate_limited", timedelta(seconds=1))
    admin_app = Admin(Readiness([], clock), counted, lambda: read_gauges(engine, clock, ["prod"])).app()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=admin_app), base_url="http://admin.test") as client:
        text = (await client.get("/metrics")).text

    families = {family.name: family for family in text_string_to_metric_families(text)}
    values = {(s.name, *sorted(s.labels.items())): s.value for f in families.values() for s in f.samples}
    assert {gauge.name for gauge in GAUGES} <= families.keys()
    assert values["handbell_database_up",] == 1
    assert values["handbell_inbox_lag_seconds",] == 90
    assert values["handbell_oldest_open_request_seconds",] == 90
    assert values["handbell_oldest_due_delivery_seconds",] == 90
    assert values["handbell_handoff_report_age_seconds",] == 90
    assert values["handbell_notifications", ("state", "active")] == 1
    assert values["handbell_notifications", ("state", "resolved")] == 1
    assert values["handbell_deliveries", ("reason", "routed"), ("status", "pending")] == 1
    assert values["handbell_handoff_requests_total", ("call", "state"), ("status", "200")] == 1
    for identity in ("prod", "s-1", "alice", "attention_"):
        assert identity not in text


async def test_namespace_without_a_source_raises_no_alert(engine: AsyncEngine) -> None:
    """What is remembered of it stays, and would be overdue and silent for good."""
    clock = FrozenClock(NOW)
    report = Report(NOW, "0.15.0", 1, 1, scan_complete=True, verify_complete=True, issues=())
    for namespace in ("prod", "given-up"):
        await Namespaces(engine, clock).remember(namespace, "handoff", HandoffSource(Options()))
        await HandoffStore(engine, namespace).keep_report(report)
        await clock.advance(timedelta(hours=1))

    configured: list[list[str]] = [["prod", "given-up"], ["given-up"], []]
    every = [await read_gauges(engine, clock, namespaces) for namespaces in configured]

    asked = (SWEEP_OVERDUE, HANDOFF_REPORT_AGE)
    found = [[sample.value for gauge in asked for sample in samples if sample.gauge is gauge] for samples in every]
    assert found == [[7200, 7200], [3600, 7200], [0, 0]]


async def test_metrics_without_a_database_still_show_the_counters(tmp_path: Path) -> None:
    engine = engine_for(f"sqlite:///{tmp_path / 'empty.db'}")
    clock = FrozenClock(NOW)
    counted = Metrics()
    counted.handed_off("state", 503)
    app = Admin(Readiness([], clock), counted, lambda: read_gauges(engine, clock, ["prod"])).app()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://admin.test") as client:
        text = (await client.get("/metrics")).text
    await engine.dispose()

    assert "handbell_database_up 0.0" in text
    assert 'handbell_handoff_requests_total{call="state",status="503"} 1.0' in text
    assert "handbell_notifications" not in text
