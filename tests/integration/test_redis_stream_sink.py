"""The sink on a real server: what `emit` returning means, what it costs when nobody answers, what it never says."""

import asyncio
import signal
import time
from pathlib import Path

import pytest
from redis.asyncio import Redis

from sinks.emit.breaker import FIRST_DELAY_SECONDS, Breaker
from sinks.emit.errors import HintNotDurable, MalformedHint, NotDurableReason, SinkConfigError
from sinks.emit.loop_clients import LoopClients
from sinks.emit.names import CONSUMER_KEY, STREAM
from sinks.emit.redis_stream import RedisStreamSink
from sinks.emit.wakeup import FOLLOW_UP_EVENTS, WAKE_UP_EVENTS
from tests.support.answering import answering
from tests.support.events import make_event
from tests.support.valkey import ValkeyServer
from worker.scripted.runtime import CONTENT_MARK, close_store, make_app, open_store, pause

TIMEOUT = 0.25


def make_sink(url: str, **options: object) -> RedisStreamSink:
    return RedisStreamSink(url, namespace="prod", **{"timeout": TIMEOUT, **options})  # type: ignore[arg-type]  # table of options


async def failure_of(sink: RedisStreamSink, number: int = 1) -> NotDurableReason:
    with pytest.raises(HintNotDurable) as failed:
        await sink.emit(make_event(number))
    return failed.value.reason


async def test_emit_returns_once_the_consumer_has_answered(valkey_url: str) -> None:
    sink = make_sink(valkey_url)
    async with answering(valkey_url) as consumer:
        await sink.emit(make_event(7))

        (entry,) = consumer.entries
    del entry["reply"]
    assert entry == {
        "v": "1",
        "namespace": "prod",
        "session_id": "s-1",
        "event_id": "cayu_event_7",
        "type": "session.interrupted",
        "occurred_at": "2026-03-01T12:00:00.000000+00:00",
    }
    await sink.aclose()


async def test_real_pause_sends_only_wake_up_events_and_nothing_of_their_content(
    valkey_url: str, tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "cayu.db"))
    sink = make_sink(valkey_url, timeout=5.0)
    async with answering(valkey_url) as consumer:
        await pause(make_app(store, sinks=[sink]), "user_input", "s-1")
        await pause(make_app(store, sinks=[sink]), "manual_recovery", "s-2")

    types = {(entry["session_id"], entry["type"]) for entry in consumer.entries}
    assert {("s-1", "session.awaiting_user_input"), ("s-1", "session.interrupted")} <= types
    assert ("s-2", "session.interrupted") in types
    assert {event_type for _, event_type in types} <= WAKE_UP_EVENTS
    assert CONTENT_MARK not in str(consumer.entries)
    assert {delivery.status for delivery in await store.list_persisted_event_side_effect_deliveries()} == {"delivered"}
    await sink.aclose()
    await close_store(store)


async def test_events_outside_the_wake_up_set_are_dropped_without_touching_redis() -> None:
    sink = make_sink("unix:///nowhere/at/all")

    for event_type in ("session.started", "model.text.delta", "tool.call.started", "tool.effect.outcome_unknown"):
        await sink.emit(make_event(event_type=event_type))


async def test_frozen_consumer_costs_one_bounded_wait_and_opens_the_breaker(valkey_url: str, redis: Redis) -> None:
    sink = make_sink(valkey_url)
    await redis.set(CONSUMER_KEY, b"1")

    started = time.perf_counter()
    first = await failure_of(sink, 1)
    waited = time.perf_counter() - started
    started = time.perf_counter()
    later = [await failure_of(sink, number) for number in range(2, 50)]
    refused = time.perf_counter() - started

    assert first is NotDurableReason.TIMEOUT
    assert TIMEOUT * 0.9 <= waited < TIMEOUT + 0.25
    assert set(later) == {NotDurableReason.BREAKER_OPEN}
    assert refused < TIMEOUT
    assert await redis.xlen(STREAM) == 1
    await sink.aclose()


async def test_breaker_closes_when_the_consumer_is_back(valkey_url: str, redis: Redis) -> None:
    seconds = [0.0]
    sink = make_sink(valkey_url, breaker=Breaker(lambda: seconds[0]))
    assert await failure_of(sink) is NotDurableReason.TIMEOUT
    seconds[0] += FIRST_DELAY_SECONDS
    assert await failure_of(sink) is NotDurableReason.BREAKER_OPEN  # the probe found no consumer
    seconds[0] += 2 * FIRST_DELAY_SECONDS

    async with answering(valkey_url) as consumer:
        while not await redis.exists(CONSUMER_KEY):
            await asyncio.sleep(0.001)
        await sink.emit(make_event())

    assert {entry["event_id"] for entry in consumer.entries} == {"cayu_event_1"}
    await sink.aclose()


async def test_probe_of_the_inbox_promise_asks_for_a_consumer_that_can_write(valkey_url: str, redis: Redis) -> None:
    sink = make_sink(valkey_url)
    assert not await sink.probe()

    await redis.set(CONSUMER_KEY, b"1")

    assert await sink.probe()
    assert sink.handbell_namespace == "prod"
    await sink.aclose()


async def test_redis_killed_while_waiting_fails_at_once_and_the_first_emit_after_its_return_succeeds(
    own_valkey: ValkeyServer,
) -> None:
    sink = make_sink(own_valkey.url, timeout=20.0)
    async with Redis.from_url(own_valkey.url) as client:
        waiting = asyncio.create_task(failure_of(sink))
        while not await client.exists(STREAM):
            await asyncio.sleep(0.001)

    own_valkey.kill()
    started = time.perf_counter()
    assert await waiting is NotDurableReason.UNREACHABLE
    assert await failure_of(sink) is NotDurableReason.UNREACHABLE
    assert time.perf_counter() - started < 2.0
    own_valkey.start()
    async with answering(own_valkey.url):
        await sink.emit(make_event())
    await sink.aclose()


async def test_frozen_redis_is_a_timeout_within_the_bound(own_valkey: ValkeyServer) -> None:
    sink = make_sink(own_valkey.url)
    async with answering(own_valkey.url):
        await sink.emit(make_event())
    own_valkey.send(signal.SIGSTOP)

    started = time.perf_counter()
    reasons = [await failure_of(sink), await failure_of(sink)]

    assert reasons == [NotDurableReason.TIMEOUT, NotDurableReason.BREAKER_OPEN]
    assert time.perf_counter() - started < TIMEOUT + 0.25
    own_valkey.send(signal.SIGCONT)
    await sink.aclose()


async def test_flushed_redis_does_not_stop_emitting(valkey_url: str, redis: Redis) -> None:
    sink = make_sink(valkey_url)
    async with answering(valkey_url):
        await sink.emit(make_event(1))
    await redis.flushall()

    async with answering(valkey_url) as consumer:
        await sink.emit(make_event(2))

    assert [entry["event_id"] for entry in consumer.entries] == ["cayu_event_2"]
    await sink.aclose()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_sink_serves_one_event_loop_after_another(valkey_url: str) -> None:
    sink = make_sink(valkey_url)

    async def emit_in_a_loop_of_its_own(number: int) -> None:
        async with answering(valkey_url):
            await sink.emit(make_event(number))

    for number in range(3):
        asyncio.run(emit_in_a_loop_of_its_own(number))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_clients_of_closed_loops_are_dropped(valkey_url: str) -> None:
    clients = LoopClients(valkey_url, timeout_seconds=TIMEOUT)

    async def ping() -> None:
        assert await clients.current().ping()

    for _ in range(5):
        asyncio.run(ping())

    assert len(clients) == 1


async def test_hundred_emits_at_once_are_all_acknowledged(valkey_url: str) -> None:
    sink = make_sink(valkey_url, timeout=10.0)
    async with answering(valkey_url) as consumer:
        await asyncio.gather(*(sink.emit(make_event(number)) for number in range(100)))

    assert len({entry["event_id"] for entry in consumer.entries}) == 100
    await sink.aclose()


async def test_hundred_emits_at_once_without_a_consumer_end_within_the_bound(valkey_url: str) -> None:
    sink = make_sink(valkey_url)

    started = time.perf_counter()
    reasons = await asyncio.gather(*(failure_of(sink, number) for number in range(100)))

    assert set(reasons) == {NotDurableReason.TIMEOUT}
    assert time.perf_counter() - started < TIMEOUT + 5.0  # the bound is one for all, not one for each
    await sink.aclose()


async def test_cancelled_emit_leaves_the_sink_usable(valkey_url: str, redis: Redis) -> None:
    sink = make_sink(valkey_url, timeout=20.0)
    emitting = asyncio.create_task(sink.emit(make_event(1)))
    while not await redis.exists(STREAM):
        await asyncio.sleep(0.001)

    emitting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await emitting

    async with answering(valkey_url):
        await sink.emit(make_event(2))
    await sink.aclose()


async def test_posted_follow_ups_do_not_wait_but_lifecycle_events_do(valkey_url: str, redis: Redis) -> None:
    sink = make_sink(valkey_url, follow_up="post")

    for number, event_type in enumerate(sorted(FOLLOW_UP_EVENTS)):
        await sink.emit(make_event(number, event_type))
    entries = await redis.xrange(STREAM)

    assert [b"reply" in fields for _, fields in entries] == [False] * len(FOLLOW_UP_EVENTS)
    assert await failure_of(sink) is NotDurableReason.TIMEOUT
    await sink.aclose()


async def test_server_s_refusal_is_told_without_its_words(valkey_url: str, redis: Redis) -> None:
    await redis.set(STREAM, b"a string")
    sink = make_sink(valkey_url)

    assert await failure_of(sink) is NotDurableReason.REFUSED
    await sink.aclose()


async def test_stream_promise_is_kept_once_redis_has_the_entry(valkey_url: str, redis: Redis) -> None:
    sink = make_sink(valkey_url, ack="stream")

    await sink.emit(make_event())

    assert await redis.xlen(STREAM) == 1
    assert await sink.probe()
    await sink.aclose()


async def test_no_error_and_no_repr_shows_the_password() -> None:
    secret = "hunter2"
    sink = make_sink(f"redis://:{secret}@127.0.0.1:1/0")

    with pytest.raises(HintNotDurable) as failed:
        await sink.emit(make_event())

    assert failed.value.__suppress_context__
    assert secret not in f"{sink!r} {failed.value!r}"
    assert str(failed.value) == NotDurableReason.UNREACHABLE.value


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("http://:hunter2@host", {}),
        ("redis://:hunter2@host:port", {}),
        ("unix:///s", {"namespace": ""}),
        ("unix:///s", {"namespace": "n" * 201}),
        ("unix:///s", {"namespace": "two words"}),
        ("unix:///s", {"namespace": "a\0b"}),
        ("unix:///s", {"timeout": 0}),
        ("unix:///s", {"timeout": 31}),
        ("unix:///s", {"ack": "maybe"}),
        ("unix:///s", {"follow_up": "never"}),
    ],
)
def test_argument_that_cannot_be_used_is_one_line_without_the_url(url: str, options: dict[str, object]) -> None:
    with pytest.raises(SinkConfigError) as refused:
        RedisStreamSink(url, **{"namespace": "prod", **options})  # type: ignore[arg-type]  # wrong on purpose

    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert isinstance(refused.value, ValueError)


async def test_identity_beyond_its_bounds_is_refused_before_redis() -> None:
    with pytest.raises(MalformedHint):
        await make_sink("unix:///nowhere").emit(make_event(session_id="s" * 513))
