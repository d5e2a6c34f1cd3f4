"""What goes out, on both databases: openings after a confirmation, settles after their openings, each once."""

from datetime import timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from config.steps import Step
from reconciler.reasons import Door
from reconciler.states import AttentionState
from tests.support.delivering import Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of
from tests.support.scripted_source import PushingSource
from worker.channels.outcomes import FailureReason, Temporary
from worker.delivery.limits import Limits


async def test_request_is_told_once_and_its_end_once(engine: AsyncEngine) -> None:
    channel = ScriptedChannel("ops")
    house = Delivering(engine, [destination_of(channel)])
    worker = house.engine()

    await house.see("a")
    await worker.run_due()
    await house.clock.advance(timedelta(minutes=1))
    for _ in range(5):
        await house.see("a", AttentionState.RESOLVED)
    await worker.run_due()
    await worker.run_due()

    assert channel.purposes() == ["open", "settle"]
    (_, settling) = channel.sent[1]
    assert [(sent.purpose, sent.provider_ref) for sent in settling.sent_before] == [
        ("open", f"ref-{channel.sent[0][0].key}")
    ]
    assert {row["status"] for row in await house.deliveries()} == {"sent"}


async def test_attempt_keeps_the_observation_that_it_was_based_on(engine: AsyncEngine) -> None:
    house = Delivering(engine, [destination_of(ScriptedChannel("ops"))])

    await house.see("a")
    await house.engine().run_due()

    (attempt,) = await house.attempts()
    assert (attempt["number"], attempt["outcome"], attempt["observed_state"], attempt["observed_reason"]) == (
        1,
        "sent",
        "active",
        "current_action",
    )
    assert attempt["observed_at"] == house.clock.now()
    assert attempt["provider_ref"] == (await house.delivery())["provider_ref"]


async def test_settled_while_the_opening_is_claimed_sends_nothing(engine: AsyncEngine) -> None:
    channel = ScriptedChannel("ops")
    house = Delivering(engine, [destination_of(channel)])
    await house.see("a")
    house.source.states["a"] = AttentionState.CANCELLED

    await house.engine().run_due()
    await house.clock.advance(timedelta(seconds=2))
    await house.engine().run_due()

    assert channel.tries == []
    opening, settle = await house.deliveries()
    assert (opening["status"], opening["reason"]) == ("cancelled", "settled_before_sending")
    assert (settle["purpose"], settle["status"], settle["reason"]) == ("settle", "cancelled", "nothing_was_opened")
    told = [(row["verdict"], row["reason"], row["purpose"]) for row in await house.decisions()]
    assert ("cancelled", "settled_before_sending", "open") in told
    assert ("cancelled", "nothing_was_opened", "settle") in told


async def test_settled_by_another_door_after_the_confirmation_sends_nothing(sqlite_engine: AsyncEngine) -> None:
    """The source said active; before the try was begun a hint settled the request."""
    channel = ScriptedChannel("ops")
    house = Delivering(sqlite_engine, [destination_of(channel)])
    await house.see("a")
    asked = house.source.observe

    async def observe_then_settle(reference):  # type: ignore[no-untyped-def]
        seen = await asked(reference)
        await house.see("a", AttentionState.RESOLVED)
        return seen

    house.source.observe = observe_then_settle
    await house.engine().run_due()

    assert channel.tries == []
    assert (await house.delivery(purpose="open"))["reason"] == "settled_before_sending"


async def test_unavailable_source_postpones_without_an_attempt_and_less_and_less_often(
    engine: AsyncEngine,
) -> None:
    channel = ScriptedChannel("ops")
    house = Delivering(engine, [destination_of(channel)])
    worker = house.engine()
    await house.see("a")
    house.source.states["a"] = AttentionState.UNAVAILABLE

    await worker.run_due()
    await house.pass_time(worker, timedelta(hours=1), timedelta(seconds=30))

    row = await house.delivery()
    assert (row["status"], row["reason"], row["attempts"]) == ("pending", "source_unavailable", 0)
    assert channel.tries == []
    assert 12 <= house.source.asked["a"] <= 30
    assert len(await house.decisions(verdict="postponed")) == 1

    house.source.states["a"] = AttentionState.ACTIVE
    await house.pass_time(worker, timedelta(minutes=6), timedelta(minutes=1))

    assert channel.purposes() == ["open"]


async def test_push_only_source_counts_while_its_word_is_fresh(engine: AsyncEngine) -> None:
    channel = ScriptedChannel("ops")
    house = Delivering(engine, [destination_of(channel)], source=PushingSource(fresh_for=timedelta(minutes=15)))
    worker = house.engine()
    await house.see("fresh", door=Door.PUSH)
    await worker.run_due()
    await house.see("old", door=Door.PUSH)
    await house.clock.advance(timedelta(minutes=16))

    await worker.run_due()

    assert [message.item.attention_id for message, _ in channel.sent] == ["fresh"]
    waiting = await house.delivery(status="pending")
    assert waiting["reason"] == "not_confirmed_lately"

    await house.see("old", door=Door.PUSH)
    await house.pass_time(worker, timedelta(minutes=6), timedelta(minutes=1))

    assert [message.item.attention_id for message, _ in channel.sent] == ["fresh", "old"]


async def test_namespace_without_source_waits_with_the_reason(engine: AsyncEngine) -> None:
    channel = ScriptedChannel("ops")
    house = Delivering(engine, [destination_of(channel)])
    await house.see("a")
    house.sources.clear()

    await house.engine().run_due()

    row = await house.delivery()
    assert (row["status"], row["reason"]) == ("pending", "no_source")
    assert channel.tries == []


async def test_dismissed_request_is_not_told(sqlite_engine: AsyncEngine) -> None:
    channel = ScriptedChannel("ops")
    house = Delivering(sqlite_engine, [destination_of(channel)])
    await house.see("a")
    async with sqlite_engine.begin() as connection:
        await connection.exec_driver_sql("UPDATE notifications SET dismissed_at = '2026-03-01T12:00:00.000000+00:00'")

    await house.engine().run_due()

    assert channel.tries == []
    assert (await house.delivery())["reason"] == "dismissed"


async def test_settle_waits_for_an_opening_that_is_not_decided(engine: AsyncEngine) -> None:
    """The opening fails once and is to be tried again; the request ends meanwhile."""
    channel = ScriptedChannel("ops", script=[Temporary(FailureReason.SERVER_ERROR)])
    house = Delivering(engine, [destination_of(channel)])
    await house.see("a")

    async def settle_meanwhile(_message: object) -> None:
        await house.see("a", AttentionState.RESOLVED)

    channel.before_answer = settle_meanwhile
    await house.engine().run_due()
    await house.clock.advance(timedelta(seconds=3))
    await house.engine().run_due()

    assert len(channel.tries) == 1
    assert [row["reason"] for row in await house.deliveries()] == ["settled_before_sending", "nothing_was_opened"]


async def test_settle_follows_an_opening_that_was_being_sent(engine: AsyncEngine) -> None:
    channel = ScriptedChannel("ops")
    house = Delivering(engine, [destination_of(channel)])
    await house.see("a")

    async def settle_meanwhile(message: object) -> None:
        channel.before_answer = None
        await house.see("a", AttentionState.RESOLVED)

    channel.before_answer = settle_meanwhile
    await house.engine().run_due()
    await house.engine().run_due()

    assert channel.purposes() == ["open", "settle"]


async def test_each_recipient_has_its_own_delivery(sqlite_engine: AsyncEngine) -> None:
    channel = ScriptedChannel("mail", recipients=("a@example.com", "b@example.com"))
    house = Delivering(sqlite_engine, [destination_of(channel)])

    await house.see("a")
    await house.engine().run_due()

    assert sorted(context.recipient for _, context in channel.sent) == ["a@example.com", "b@example.com"]
    assert house.source.asked["a"] == 1


async def test_steps_are_passed_in_order(sqlite_engine: AsyncEngine) -> None:
    steps: list[Step] = []
    house = Delivering(sqlite_engine, [destination_of(ScriptedChannel("ops"))])

    await house.see("a")
    await house.engine(on_step=steps.append).run_due()

    assert steps == [Step.CLAIMED, Step.CONFIRMED, Step.SENT, Step.ATTEMPT_RECORDED]


async def test_many_deliveries_are_carried_in_batches(engine: AsyncEngine) -> None:
    steps: list[Step] = []
    channel = ScriptedChannel("ops")
    house = Delivering(engine, [destination_of(channel)])
    for index in range(25):
        await house.see(f"request-{index}")

    await house.engine(on_step=steps.append, limits=Limits(batch=10)).run_due()

    assert len(channel.sent) == 25
    assert steps.count(Step.ATTEMPT_RECORDED) == 3


@pytest.mark.parametrize("state", [AttentionState.RESOLVED, AttentionState.SUPERSEDED, AttentionState.EXPIRED])
async def test_settle_says_the_state(sqlite_engine: AsyncEngine, state: AttentionState) -> None:
    channel = ScriptedChannel("ops")
    house = Delivering(sqlite_engine, [destination_of(channel)])
    await house.see("a")
    await house.engine().run_due()

    await house.see("a", state)
    await house.engine().run_due()

    assert channel.sent[-1][0].item.state is state
