"""Several workers and several destinations at once: nobody repeats or delays another."""

import asyncio
from datetime import timedelta

import pytest
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import SystemClock
from config.steps import Step
from reconciler.states import AttentionState
from tests.support.delivering import Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of
from tests.support.steps import Steps
from worker.bells import Bell, Stage
from worker.channels.outcomes import FailureReason, Temporary
from worker.delivery.limits import Limits

DOWN = Temporary(FailureReason.UNREACHABLE)


async def test_two_workers_send_each_message_once(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook")
    house = Delivering(engine, [destination_of(hook)])
    for index in range(40):
        await house.see(f"request-{index}")
    workers = [house.engine(limits=Limits(batch=5)) for _ in range(2)]

    await asyncio.gather(*(worker.run_due() for worker in workers))
    await house.clock.advance(timedelta(seconds=1))
    await asyncio.gather(*(worker.run_due() for worker in workers))

    assert len(hook.tries) == 40
    assert set(hook.accepted.values()) == {1}


async def test_two_workers_and_a_webhook_that_is_down_for_a_minute(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", script=[DOWN] * 1000)
    house = Delivering(engine, [destination_of(hook)])
    workers = [house.engine(), house.engine()]
    await house.see("a")

    for second in range(0, 150, 3):
        if second == 60:
            hook.script = []
        await asyncio.gather(*(worker.run_due() for worker in workers))
        await house.clock.advance(timedelta(seconds=3))

    assert len(hook.sent) == 1
    assert len({message.key for message, _ in hook.tries}) == 1
    assert [row["number"] for row in await house.attempts()] == list(range(1, len(hook.tries) + 1))


async def test_slow_destination_delays_no_other(sqlite_engine: AsyncEngine) -> None:
    slow, quick = ScriptedChannel("slow"), ScriptedChannel("quick")
    house = Delivering(sqlite_engine, [destination_of(slow), destination_of(quick)], clock=SystemClock())
    released, stop = asyncio.Event(), asyncio.Event()

    async def hang(_message: object) -> None:
        await released.wait()

    slow.before_answer = hang
    steps = Steps()
    bell = Bell(Stage.DELIVERY, house.clock)
    running = asyncio.create_task(house.engine(bell=bell, on_step=steps).run(stop))
    for index in range(10):
        await house.see(f"request-{index}")
        bell.ring()
        await steps.reach(Step.SENT, index + 1)

    assert len(quick.sent) == 10
    assert not slow.sent
    released.set()
    await steps.reach(Step.SENT, 20)
    stop.set()
    await running


async def test_bell_brings_a_settle_out_at_once(engine: AsyncEngine) -> None:
    """Without the bell the loop would look again after an hour."""
    hook = ScriptedChannel("hook")
    house = Delivering(engine, [destination_of(hook)], clock=SystemClock())
    bell, stop, steps = Bell(Stage.DELIVERY, house.clock), asyncio.Event(), Steps()
    worker = house.engine(bell=bell, limits=Limits(idle=timedelta(hours=1)), on_step=steps)
    running = asyncio.create_task(worker.run(stop))
    await house.see("a")
    bell.ring()
    await steps.reach(Step.ATTEMPT_RECORDED, 1)

    await house.see("a", AttentionState.RESOLVED)
    bell.ring()
    await steps.reach(Step.ATTEMPT_RECORDED, 2)

    assert hook.purposes() == ["open", "settle"]
    stop.set()
    await running


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_stopping_lets_what_is_being_sent_end_and_gives_the_rest_back(
    sqlite_engine: AsyncEngine, is_cancelled: bool
) -> None:
    hook = ScriptedChannel("hook")
    house = Delivering(sqlite_engine, [destination_of(hook)], clock=SystemClock())
    sending, answer, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hang(_message: object) -> None:
        sending.set()
        await answer.wait()

    hook.before_answer = hang
    for index in range(3):
        await house.see(f"request-{index}")
    running = asyncio.create_task(house.engine(limits=Limits(at_once=1)).run(stop))
    await sending.wait()

    if is_cancelled:
        running.cancel()
    else:
        stop.set()
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.05, answer.set)
    await asyncio.gather(running, return_exceptions=True)

    rows = await house.deliveries()
    assert [row["status"] for row in rows] == ["sent", "pending", "pending"]
    assert [row["attempts"] for row in rows] == [1, 0, 0]
    assert [row["begun_at"] for row in rows] == [None, None, None]


async def test_lease_is_renewed_while_a_message_is_being_sent(sqlite_engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook")
    house = Delivering(sqlite_engine, [destination_of(hook)])
    sending, answer = asyncio.Event(), asyncio.Event()

    async def hang(_message: object) -> None:
        sending.set()
        await answer.wait()

    hook.before_answer = hang
    await house.see("a")
    first = asyncio.create_task(house.engine().run_due())
    await sending.wait()
    for _ in range(8):
        before = (await house.delivery())["leased_until"]
        await house.clock.advance(timedelta(seconds=10))
        async with asyncio.timeout(10):
            while (await house.delivery())["leased_until"] == before:
                await asyncio.sleep(0)
        await house.engine().run_due()
    answer.set()
    await first

    assert len(hook.tries) == 1
    assert (await house.delivery())["status"] == "sent"


async def test_bell_is_heard_in_another_process_and_its_list_stays_short(valkey_url: str, redis: Redis) -> None:
    clock = SystemClock()
    here, there = (Bell(Stage.DELIVERY, clock, Redis.from_url(valkey_url)) for _ in range(2))
    for _ in range(50):
        here.ring()
        await here.close()
    assert await redis.llen("handbell:bell:delivery") <= 8

    listening = asyncio.create_task(there.listen())
    assert await there.wait(timedelta(seconds=20))
    here.ring()
    assert await there.wait(timedelta(seconds=20))

    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await here.close()


async def test_bell_without_a_redis_that_answers_still_rings_here() -> None:
    bell = Bell(Stage.REFRESH, SystemClock(), Redis.from_url("redis://127.0.0.1:1/0"))

    bell.ring()

    assert await bell.wait(timedelta(seconds=20))
    assert not await bell.wait(timedelta(0))
    await bell.close()
