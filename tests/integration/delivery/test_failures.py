"""What happens when a provider does not simply accept: retries, bounds, unknown outcomes, broken destinations."""

import asyncio
import logging
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock
from reconciler.states import AttentionState
from tests.support.delivering import START, Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of
from worker.channels.outcomes import FailureReason, Permanent, Sent, Temporary, Unknown
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


@pytest.mark.parametrize("reason", [FailureReason.UNAUTHORIZED, FailureReason.DESTINATION_GONE])
async def test_revoked_or_archived_uses_the_fallback_and_tells_the_operator_once(
    engine: AsyncEngine, reason: FailureReason
) -> None:
    slack = ScriptedChannel("slack", script=[Permanent(reason)] * 50)
    mail, pager = ScriptedChannel("mail"), ScriptedChannel("pager")
    destinations = [destination_of(slack, fallback=["mail"]), destination_of(mail), destination_of(pager)]
    house = Delivering(engine, destinations, routed=["slack"])
    worker = house.engine(operator=["slack", "pager"])
    for name in ("a", "b", "c", "d"):
        await house.see(name)
        await worker.run_due()

    assert sorted(message.item.attention_id for message, _ in mail.sent) == ["a", "b", "c", "d"]
    assert len(slack.tries) == 1
    (notice,) = pager.sent
    assert notice[0].purpose == "notice"
    assert "slack" in notice[0].item.summary
    assert not [row for row in await house.deliveries(destination="slack") if row["notice_id"]]
    reasons = {row["reason"] for row in await house.decisions(destination="mail")}
    assert reasons == {"fallback"}

    await house.pass_time(house.engine(operator=["slack", "pager"]), timedelta(hours=1), timedelta(minutes=5))

    assert len(await house.notices()) == 1
    assert len(pager.sent) == 1


async def test_only_repeated_failures_of_messages_break_a_destination(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", script=[Permanent(FailureReason.REJECTED)] * 2 + [Sent(None)])
    house = Delivering(engine, [destination_of(hook)])
    worker = house.engine()
    for name in ("a", "b", "c", "d"):
        await house.see(name)
        await worker.run_due()
    assert (await house.destination("hook"))["broken_at"] is None

    hook.script = [Permanent(FailureReason.REJECTED)] * 3
    for name in ("e", "f", "g"):
        await house.see(name)
        await worker.run_due()

    health = await house.destination("hook")
    assert (health["broken_reason"], health["permanent_failures"]) == ("rejected", 3)


async def test_broken_destination_is_probed_and_mended(engine: AsyncEngine) -> None:
    """Without a fallback its messages wait; one of them is tried every few minutes."""
    slack = ScriptedChannel("slack", script=[Permanent(FailureReason.UNAUTHORIZED)] * 2)
    house = Delivering(engine, [destination_of(slack)])
    worker = house.engine()
    for name in ("a", "b", "c", "d"):
        await house.see(name)

    await house.engine(limits=Limits(batch=1)).run_due()
    assert len(slack.tries) == 1
    await house.pass_time(worker, timedelta(minutes=4), timedelta(minutes=1))
    assert len(slack.tries) == 1
    await house.pass_time(worker, timedelta(minutes=2), timedelta(minutes=1))
    assert len(slack.tries) == 2
    await house.pass_time(worker, timedelta(minutes=6), timedelta(minutes=1))

    assert sorted(message.item.attention_id for message, _ in slack.sent) == ["c", "d"]
    assert (await house.destination("slack"))["broken_at"] is None
    assert [row["closed_at"] is not None for row in await house.notices()] == [True]


async def test_two_destinations_that_stand_in_for_each_other_end(engine: AsyncEngine) -> None:
    gone = [Permanent(FailureReason.DESTINATION_GONE)] * 10
    one, two = ScriptedChannel("one", script=list(gone)), ScriptedChannel("two", script=list(gone))
    house = Delivering(engine, [destination_of(one, fallback=["two"]), destination_of(two, fallback=["one"])])
    await house.see("a")
    worker = house.engine()

    await worker.run_due()
    await house.pass_time(worker, timedelta(hours=1), timedelta(minutes=5))

    assert (len(one.tries), len(two.tries)) == (1, 1)
    assert {row["status"] for row in await house.deliveries()} == {"dead"}


async def test_edit_whose_target_is_gone_ends_without_breaking_the_destination(engine: AsyncEngine) -> None:
    slack = ScriptedChannel("slack")
    house = Delivering(engine, [destination_of(slack, fallback=["mail"]), destination_of(ScriptedChannel("mail"))])
    worker = house.engine(limits=Limits(permanent_limit=1, dead_letter_limit=1))
    await house.see("a")
    await worker.run_due()
    slack.script = [Permanent(FailureReason.TARGET_GONE)]
    await house.see("a", AttentionState.RESOLVED)

    await worker.run_due()
    await house.pass_time(worker, timedelta(hours=2), timedelta(minutes=10))

    row = await house.delivery(destination="slack", purpose="settle")
    assert (row["status"], row["reason"], row["attempts"]) == ("dead", "target_gone", 1)
    health = await house.destination("slack")
    assert (health["broken_at"], health["paused_at"], health["permanent_failures"]) == (None, None, 0)
    assert not await house.notices()


async def test_too_many_dead_letters_pause_a_destination(engine: AsyncEngine) -> None:
    hook, pager = ScriptedChannel("hook", script=[DOWN] * 1000), ScriptedChannel("pager")
    house = Delivering(engine, [destination_of(hook), destination_of(pager)], routed=["hook"])
    limits = Limits(dead_letter_limit=3, batch=1, backoff=BackOff(max_attempts=1))
    worker = house.engine(limits=limits, operator=["pager"])
    for index in range(10):
        await house.see(f"request-{index}")

    await worker.run_due()
    await house.pass_time(worker, timedelta(hours=1), timedelta(minutes=10))

    statuses = [row["status"] for row in await house.deliveries(destination="hook")]
    assert (statuses.count("dead"), statuses.count("pending")) == (3, 7)
    assert len(pager.sent) == 1
    assert [row["kind"] for row in await house.notices()] == ["destination_paused"]


async def test_unknown_is_looked_up_and_found(engine: AsyncEngine) -> None:
    slack = ScriptedChannel("slack", script=[LOST], found=[Sent("ts-1")], on_unknown=UnknownPolicy.LOOK_UP)
    house = Delivering(engine, [destination_of(slack)])
    worker = house.engine()
    await house.see("a")

    await worker.run_due()
    assert (await house.delivery())["status"] == "unknown"
    await house.pass_time(worker, 5 * SECOND, SECOND)

    row = await house.delivery()
    assert (row["status"], row["provider_ref"], len(slack.tries)) == ("sent", "ts-1", 1)
    assert [attempt["outcome"] for attempt in await house.attempts()] == ["unknown", "found"]


async def test_unknown_that_is_proven_absent_is_sent_again(engine: AsyncEngine) -> None:
    slack = ScriptedChannel("slack", script=[LOST], found=[None], on_unknown=UnknownPolicy.LOOK_UP)
    house = Delivering(engine, [destination_of(slack)])
    worker = house.engine()
    await house.see("a")

    await worker.run_due()
    await house.pass_time(worker, 10 * SECOND, SECOND)

    assert (len(slack.tries), len(slack.sent), slack.lookups) == (2, 1, 1)
    assert [attempt["outcome"] for attempt in await house.attempts()] == ["unknown", "absent", "sent"]


async def test_look_up_that_is_not_answered_is_repeated_boundedly_never_sent_again(engine: AsyncEngine) -> None:
    slack = ScriptedChannel("slack", script=[LOST], found=[DOWN] * 100, on_unknown=UnknownPolicy.LOOK_UP)
    house = Delivering(engine, [destination_of(slack)])
    worker = house.engine()
    await house.see("a")

    await worker.run_due()
    await house.pass_time(worker, timedelta(hours=2), timedelta(minutes=1))

    row = await house.delivery()
    assert (row["status"], row["reason"], len(slack.tries)) == ("dead", "server_error", 1)
    assert 3 <= slack.lookups <= 20


async def test_settle_waits_for_the_look_up_of_its_opening(engine: AsyncEngine) -> None:
    slack = ScriptedChannel("slack", script=[LOST], found=[DOWN, Sent("ts-1")], on_unknown=UnknownPolicy.LOOK_UP)
    house = Delivering(engine, [destination_of(slack)])
    worker = house.engine()
    await house.see("a")
    await worker.run_due()
    await house.see("a", AttentionState.RESOLVED)

    await worker.run_due()
    assert (await house.delivery(purpose="settle"))["reason"] == "waits_for_opening"
    await house.pass_time(worker, 30 * SECOND, SECOND)

    (settle, context) = slack.sent[-1]
    assert (settle.purpose, context.sent_before[0].provider_ref) == ("settle", "ts-1")


async def test_webhook_is_resent_under_the_same_id(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", script=[LOST, LOST], on_unknown=UnknownPolicy.RESEND)
    house = Delivering(engine, [destination_of(hook)])
    worker = house.engine()
    await house.see("a")

    await worker.run_due()
    await house.pass_time(worker, 30 * SECOND, SECOND)

    assert (len(hook.tries), len({message.key for message, _ in hook.tries}), len(hook.sent)) == (3, 1, 1)


async def test_mail_is_resent_once_at_most(engine: AsyncEngine) -> None:
    mail = ScriptedChannel("mail", script=[LOST, LOST, LOST], on_unknown=UnknownPolicy.RESEND_ONCE)
    house = Delivering(engine, [destination_of(mail)])
    worker = house.engine()
    await house.see("a")

    await worker.run_due()
    await house.pass_time(worker, timedelta(hours=1), timedelta(minutes=1))

    assert (len(mail.tries), (await house.delivery())["status"]) == (2, "dead")


async def test_unknown_without_remedy_is_a_dead_letter_at_once(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", script=[LOST], on_unknown=UnknownPolicy.GIVE_UP)
    house = Delivering(engine, [destination_of(hook, fallback=["mail"]), destination_of(ScriptedChannel("mail"))])
    await house.see("a")
    worker = house.engine()

    await worker.run_due()
    await house.pass_time(worker, timedelta(hours=1), timedelta(minutes=1))

    assert (len(hook.tries), (await house.delivery(destination="hook"))["status"]) == (1, "dead")


async def test_end_is_told_where_the_opening_may_have_arrived(engine: AsyncEngine) -> None:
    """The webhook may have the opening; before it is sent again the request is over."""
    hook = ScriptedChannel("hook", script=[LOST], on_unknown=UnknownPolicy.RESEND)
    house = Delivering(engine, [destination_of(hook)])
    worker = house.engine()
    await house.see("a")
    await worker.run_due()

    await house.see("a", AttentionState.RESOLVED)
    await house.pass_time(worker, 5 * SECOND, SECOND)

    assert hook.purposes() == ["settle"]
    assert (await house.delivery(purpose="open"))["status"] == "cancelled"


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
