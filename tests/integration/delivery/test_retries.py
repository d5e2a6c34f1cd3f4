"""A provider that does not simply accept: Retry-After, retries and their bounds."""

import asyncio
import logging
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock
from tests.support.delivering import START, Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of
from worker.channels.outcomes import FailureReason, Permanent, Temporary, Unknown
from worker.channels.protocol import UnknownPolicy
from worker.delivery import ledger
from worker.delivery.backoff import BackOff
from worker.delivery.limits import Limits

SECOND = timedelta(seconds=1)
RATE_LIMITED = Temporary(FailureReason.RATE_LIMITED, retry_after=timedelta(seconds=2))
DOWN = Temporary(FailureReason.SERVER_ERROR)
LOST = Unknown(FailureReason.CONNECTION_LOST)


async def test_retry_after_is_kept_and_delays_nobody_else(engine: AsyncEngine) -> None:
    slack, mail = ScriptedChannel("slack", script=[RATE_LIMITED]), ScriptedChannel("mail")
    house = Delivering(engine, [destination_of(slack), destination_of(mail)])
    worker = house.engine()
    await house.see("a")

    await worker.run_due()
    assert len(mail.sent) == 1
    await house.pass_time(worker, timedelta(seconds=1.9), timedelta(seconds=1.9))
    assert len(slack.tries) == 1
    await house.pass_time(worker, SECOND, SECOND)

    assert [context.attempt for _, context in slack.tries] == [1, 2]
    assert len(slack.sent) == len(mail.sent) == 1


async def test_retry_after_holds_the_whole_destination(engine: AsyncEngine) -> None:
    slack = ScriptedChannel("slack", script=[Temporary(FailureReason.RATE_LIMITED, timedelta(seconds=30))])
    house = Delivering(engine, [destination_of(slack)])
    worker = house.engine()
    await house.see("a")
    await worker.run_due()

    await house.see("b")
    await house.pass_time(worker, 29 * SECOND, SECOND)
    assert len(slack.tries) == 1
    await house.pass_time(worker, 2 * SECOND, SECOND)

    assert len(slack.sent) == 2


async def test_mail_is_sent_once_while_the_webhook_fails_five_times(engine: AsyncEngine) -> None:
    hook, mail = ScriptedChannel("hook", script=[DOWN] * 5), ScriptedChannel("mail")
    house = Delivering(engine, [destination_of(hook), destination_of(mail)])
    worker = house.engine()
    await house.see("a")

    await worker.run_due()
    await house.pass_time(worker, timedelta(minutes=3), 5 * SECOND)

    assert len(mail.tries) == 1
    assert len(hook.sent) == 1
    assert len({message.key for message, _ in hook.tries}) == 1
    assert [row["number"] for row in await house.attempts(outcome="temporary")] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("luck", [0.0, 0.5, 0.999])
async def test_receiver_down_for_ten_minutes_sees_at_most_twelve_tries(sqlite_engine: AsyncEngine, luck: float) -> None:
    hook = ScriptedChannel("hook", script=[DOWN] * 100)
    house = Delivering(sqlite_engine, [destination_of(hook)])
    worker = house.engine(luck=luck)
    await house.see("a")

    await worker.run_due()
    await house.pass_time(worker, timedelta(minutes=10), 5 * SECOND)

    assert 6 <= len(hook.tries) <= 12


async def test_tries_are_bounded_and_then_a_dead_letter(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", script=[DOWN] * 100)
    house = Delivering(engine, [destination_of(hook)])
    worker = house.engine(limits=Limits(backoff=BackOff(base=SECOND, cap=2 * SECOND, max_attempts=4)))
    await house.see("a")

    await worker.run_due()
    await house.pass_time(worker, timedelta(minutes=1), 2 * SECOND)

    row = await house.delivery()
    assert (row["status"], row["reason"], row["attempts"]) == ("dead", "server_error", 4)
    assert len(hook.tries) == 4


async def test_age_is_bounded_from_the_first_try(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", script=[DOWN] * 100)
    house = Delivering(engine, [destination_of(hook)])
    worker = house.engine(limits=Limits(backoff=BackOff(base=SECOND, cap=60 * SECOND, max_age=timedelta(minutes=5))))
    await house.see("a")
    await house.clock.advance(timedelta(days=3))

    await worker.run_due()
    assert (await house.delivery())["status"] == "pending"
    await house.pass_time(worker, timedelta(minutes=6), 10 * SECOND)

    assert (await house.delivery())["status"] == "dead"


async def test_permanent_failure_is_not_retried(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", script=[Permanent(FailureReason.REJECTED)])
    house = Delivering(engine, [destination_of(hook)])
    worker = house.engine()
    await house.see("a")

    await worker.run_due()
    await house.pass_time(worker, timedelta(hours=1), timedelta(minutes=5))

    row = await house.delivery()
    assert (row["status"], row["reason"], len(hook.tries)) == ("dead", "rejected", 1)
    assert (await house.destination("hook"))["broken_at"] is None


@pytest.mark.parametrize("policy", list(UnknownPolicy))
async def test_exception_out_of_a_channel_is_recorded_retried_and_bounded(
    sqlite_engine: AsyncEngine,
    policy: UnknownPolicy,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    secret = "https://hooks.example/services/T0/SECRET"
    hook = ScriptedChannel("hook", script=[ValueError(secret)] * 100, on_unknown=policy)
    other = ScriptedChannel("other")
    house = Delivering(sqlite_engine, [destination_of(hook), destination_of(other)])
    worker = house.engine()
    await house.see("a")

    with caplog.at_level(logging.INFO):
        await worker.run_due()
        await house.pass_time(worker, timedelta(hours=26), timedelta(minutes=20))

    row = await house.delivery(destination="hook")
    assert (row["status"], row["reason"]) == ("dead", "unexpected")
    assert 2 <= len(hook.tries) <= 5
    assert len(other.sent) == 1
    everything = [str(entry) for entry in [*await house.attempts(), *await house.deliveries(), *await house.notices()]]
    written = capfd.readouterr()
    assert "SECRET" not in "".join([*everything, caplog.text, written.out, written.err])
    assert "scripted_channel.py" in written.out + written.err + caplog.text


async def test_hanging_channel_is_an_unknown_outcome(sqlite_engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", on_unknown=UnknownPolicy.GIVE_UP)
    house = Delivering(sqlite_engine, [destination_of(hook)])
    await house.see("a")

    async def hang(_message: object) -> None:
        await house.clock.sleep(timedelta(days=1))

    hook.before_answer = hang
    await house.engine(limits=Limits(send_bound=timedelta(milliseconds=20))).run_due()

    row = await house.delivery()
    assert (row["status"], row["reason"]) == ("dead", "timed_out")


async def test_throttle_spaces_messages_across_two_workers(engine: AsyncEngine) -> None:
    slack = ScriptedChannel("slack")
    house = Delivering(engine, [destination_of(slack, throttle=SECOND)])
    workers = [house.engine(), house.engine()]
    for index in range(6):
        await house.see(f"request-{index}")
    at = []

    async def note(_message: object) -> None:
        at.append(house.clock.now())

    slack.before_answer = note
    for _ in range(40):
        for worker in workers:
            await worker.run_due()
        await house.clock.advance(timedelta(milliseconds=250))

    assert len(slack.sent) == 6
    assert all(later - earlier >= SECOND for earlier, later in pairwise(at))


async def test_destination_that_is_no_longer_configured_becomes_a_dead_letter(engine: AsyncEngine) -> None:
    old, new = destination_of(ScriptedChannel("old")), destination_of(ScriptedChannel("new"))
    house = Delivering(engine, [old, new])
    await house.see("a")
    house.destinations = [new]

    await house.engine().run_due()
    assert (await house.delivery(destination="old"))["status"] == "pending"
    await house.clock.advance(timedelta(hours=2))
    await house.engine().run_due()

    row = await house.delivery(destination="old")
    assert (row["status"], row["reason"]) == ("dead", "no_destination")


async def test_outage_of_the_database_is_waited_out(
    sqlite_engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A known outcome is recorded as soon as the database takes it again: it never becomes an unknown one."""
    hook = ScriptedChannel("hook", on_unknown=UnknownPolicy.GIVE_UP)
    house = Delivering(sqlite_engine, [destination_of(hook)], clock=FrozenClock(START))
    await house.see("a")
    record, refused = ledger.record, []

    async def refuse_twice(*arguments: object, **options: object) -> object:
        if len(refused) < 2:
            refused.append(arguments)
            raise OperationalError("COMMIT", {}, Exception("the server went away"))
        return await record(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(ledger, "record", refuse_twice)
    delivering = asyncio.create_task(house.engine().run_due())
    while not delivering.done():
        await house.clock.advance(SECOND / 10 if refused else timedelta(0))
        await asyncio.sleep(0.002)
    await delivering

    assert ((await house.delivery())["status"], len(hook.tries)) == ("sent", 1)
