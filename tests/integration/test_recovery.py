"""Recovery sweeps on a real Cayu store: nothing before its deadline, nothing while the sink's probe fails."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cayu import CayuApp
from cayu.events import Event
from cayu.observability import EventSink
from redis.asyncio import Redis

from config.clock import FrozenClock
from sinks.emit.errors import SinkConfigError
from sinks.emit.handbell_sinks import handbell_sinks, sink_of
from sinks.emit.names import RECOVERY_PREFIX
from sinks.emit.recovery import load_app, main, worker
from sinks.emit.recovery_loop import Outcome, Recovery, run_rounds
from sinks.emit.redis_stream import RedisStreamSink
from tests.support.answering import answering
from worker.scripted.runtime import close_store, make_app, open_store, pause

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DEADLINE = timedelta(seconds=30)  # the runtime's own, constant
TEN_MINUTES = 20  # rounds of 30 s


class Refusing(EventSink):
    """Somebody else's sink, which is down."""

    def __init__(self) -> None:
        self.calls = 0

    async def emit(self, event: Event) -> None:
        self.calls += 1
        raise RuntimeError("down")


class Counting:
    """An application whose recovery calls are counted."""

    def __init__(self, app: CayuApp) -> None:
        self._app = app
        self.asked: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    async def recover_persisted_event_side_effects(self, *, limit: int) -> list[Event]:
        self.asked.append(limit)
        recovered: list[Event] = await self._app.recover_persisted_event_side_effects(limit=limit)
        return recovered


async def test_ten_minutes_without_handbell_make_no_dead_letter_and_all_is_sent_when_it_returns(
    valkey_url: str, redis: Redis, tmp_path: Path
) -> None:
    clock = FrozenClock(AT)
    store = open_store(str(tmp_path / "cayu.db"), ownership_clock=clock.now)
    sink = RedisStreamSink(valkey_url, namespace="prod", timeout=0.1)
    app = make_app(store, sinks=[sink])
    await pause(app, "user_input", "s-1")
    recovery = Recovery(app, sink, limit=100)

    assert (await recovery.round()).outcome is Outcome.IDLE
    outcomes = []
    for _ in range(TEN_MINUTES):
        await clock.advance(DEADLINE)
        outcomes.append((await recovery.round()).outcome)
    assert outcomes == [Outcome.SKIPPED] * TEN_MINUTES
    health = await app.get_persisted_event_side_effect_health()
    assert (health.dead_lettered, health.max_outstanding_attempts) == (0, 1)

    async with answering(valkey_url) as consumer:
        while not await sink.probe():
            await asyncio.sleep(0.001)
        done = await recovery.round()
    assert (done.outcome, done.outstanding, done.dead_lettered) == (Outcome.RECOVERED, 0, 0)
    assert done.recovered == 3
    assert {entry["session_id"] for entry in consumer.entries} == {"s-1"}
    counters = await redis.hgetall(RECOVERY_PREFIX + "prod")  # type: ignore[misc]  # typed as maybe synchronous
    assert counters[b"rounds_skipped"] == str(TEN_MINUTES).encode()
    assert (counters[b"recovered"], counters[b"last_outcome"]) == (b"3", b"recovered")
    await sink.aclose()
    await close_store(store)


async def test_failing_rows_are_tried_exactly_as_often_as_their_deadlines_allow(
    valkey_url: str, tmp_path: Path
) -> None:
    clock = FrozenClock(AT)
    store = open_store(str(tmp_path / "cayu.db"), ownership_clock=clock.now)
    sink, other = RedisStreamSink(valkey_url, namespace="prod", timeout=5.0), Refusing()
    app = Counting(make_app(store, sinks=[sink, other]))
    async with answering(valkey_url):
        await pause(app, "user_input", "s-1")  # type: ignore[arg-type]  # it stands for one
        failing = (await app.get_persisted_event_side_effect_health()).failed_deferred
        inline = other.calls
        recovery = Recovery(app, sink, limit=100)

        for _ in range(TEN_MINUTES * 3):
            await recovery.round()
            await clock.advance(DEADLINE / 3)

    assert failing == inline > 5
    assert app.asked == [1, failing - 1] * 2  # at 30 s and at 60 s: the second and third attempt of each
    assert other.calls == 3 * failing
    assert (await app.get_persisted_event_side_effect_health()).dead_lettered == failing
    await sink.aclose()
    await close_store(store)


async def test_consumer_that_freezes_after_the_probe_costs_one_event_one_attempt(
    valkey_url: str, redis: Redis, tmp_path: Path
) -> None:
    clock = FrozenClock(AT)
    store = open_store(str(tmp_path / "cayu.db"), ownership_clock=clock.now)
    sink = RedisStreamSink(valkey_url, namespace="prod", timeout=0.1)
    app = make_app(store, sinks=[sink])
    await pause(app, "user_input", "s-1")
    await clock.advance(DEADLINE)
    await redis.set("handbell:consumer", b"1")  # believed alive, but nobody answers

    done = await Recovery(app, sink, limit=100).round()

    deliveries = await store.list_persisted_event_side_effect_deliveries()
    assert done.outcome is Outcome.INCOMPLETE
    assert sorted(row.attempts for row in deliveries if row.status == "failed") == [1, 1, 2]
    await sink.aclose()
    await close_store(store)


async def test_store_that_fails_is_counted_and_does_not_end_the_loop(
    valkey_url: str, redis: Redis, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(str(tmp_path / "cayu.db"))
    sink = RedisStreamSink(valkey_url, namespace="prod")
    app = make_app(store, sinks=[sink])
    await close_store(store)
    stop = asyncio.Event()
    waits: list[timedelta] = []

    async def no_pause(duration: timedelta) -> None:
        waits.append(duration)
        if len(waits) == 3:
            stop.set()

    await run_rounds(Recovery(app, sink, limit=100), stop, every=DEADLINE, pause=no_pause)

    assert waits == [DEADLINE] * 3
    assert await redis.hget(RECOVERY_PREFIX + "prod", "rounds_failed") == b"3"  # type: ignore[misc]
    assert [record.levelname for record in caplog.records if record.name == "handbell.recovery"] == ["WARNING"]
    await sink.aclose()


async def test_waiting_loop_stops_at_once(valkey_url: str, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "cayu.db"))
    sink = RedisStreamSink(valkey_url, namespace="prod")
    stop = asyncio.Event()
    running = asyncio.create_task(worker(make_app(store, sinks=[sink]), stop))
    await asyncio.sleep(0.05)

    stop.set()

    await asyncio.wait_for(running, 2)
    await sink.aclose()
    await close_store(store)


async def test_sink_is_found_by_its_attributes_among_the_application_s(tmp_path: Path) -> None:
    """Pins the one private name of Cayu that is used."""
    store = open_store(str(tmp_path / "cayu.db"))
    sink = RedisStreamSink("unix:///nowhere", namespace="prod")
    app = make_app(store, sinks=[Refusing(), sink])

    assert handbell_sinks(app) == [sink]
    assert sink_of(app, "prod") is sink
    assert sink_of(app, None) is sink
    await close_store(store)


async def test_application_without_the_namespace_s_sink_is_refused(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "cayu.db"))
    app = make_app(store, sinks=[RedisStreamSink("unix:///nowhere", namespace="test"), Refusing()])

    with pytest.raises(SinkConfigError, match="no Handbell sink of namespace 'prod'"):
        sink_of(app, "prod")
    with pytest.raises(SinkConfigError, match="exactly one"):
        await worker(make_app(store), asyncio.Event())
    await close_store(store)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--app", "nothing", "--namespace", "prod"], "package.module:factory"),
        (["--app", "no.such.module:factory", "--namespace", "prod"], "No module named"),
        (["--app", "json:nothing", "--namespace", "prod"], "nothing"),
        (["--app", "builtins:dict", "--namespace", "prod"], "not a Cayu application"),
        (["--app", "builtins:dict", "--namespace", "prod", "--every", "soon"], "not a duration"),
        (["--app", "builtins:dict", "--namespace", "prod", "--limit", "1001"], "from 1 to 1000"),
        (["--namespace", "prod"], "--app"),
    ],
)
def test_wrong_command_line_is_one_line_and_exit_2(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = main(arguments)
    except SystemExit as exit_:
        code = exit_.code

    error = capsys.readouterr().err
    assert code == 2
    assert line in error
    assert "Traceback" not in error


async def test_factory_may_be_a_coroutine_function(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "recovery_factory_module.py").write_text(
        "class App:\n    async def recover_persisted_event_side_effects(self, limit): ...\n"
        "async def factory(): return App()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    assert type(await load_app("recovery_factory_module:factory")).__name__ == "App"


def test_command_refuses_an_application_without_the_sink_with_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agent_without_the_sink.py").write_text(
        "from worker.scripted.runtime import make_app, open_store\n"
        f"def factory(): return make_app(open_store({str(tmp_path / 'cayu.db')!r}), agents=False)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    code = main(["--app", "agent_without_the_sink:factory", "--namespace", "prod"])

    error = capsys.readouterr().err
    assert code == 2
    assert error.startswith("handbell_emit.recovery: the application has no Handbell sink")
    assert error.count("\n") == 1
