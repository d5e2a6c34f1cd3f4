"""A destination that refuses: fallbacks, one notice, probes, and the dead-letter limit."""

from datetime import timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.states import AttentionState
from tests.support.delivering import Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of
from worker.channels.outcomes import FailureReason, Permanent, Sent, Temporary, Unknown
from worker.delivery.backoff import BackOff
from worker.delivery.limits import Limits

SECOND = timedelta(seconds=1)
RATE_LIMITED = Temporary(FailureReason.RATE_LIMITED, retry_after=timedelta(seconds=2))
DOWN = Temporary(FailureReason.SERVER_ERROR)
LOST = Unknown(FailureReason.CONNECTION_LOST)


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
