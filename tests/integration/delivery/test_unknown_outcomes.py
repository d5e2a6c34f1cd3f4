"""The provider may have it: looked up, resent under its id, or given up, never repeated blindly."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.states import AttentionState
from tests.support.delivering import Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of
from worker.channels.outcomes import FailureReason, Sent, Temporary, Unknown
from worker.channels.protocol import UnknownPolicy

SECOND = timedelta(seconds=1)
RATE_LIMITED = Temporary(FailureReason.RATE_LIMITED, retry_after=timedelta(seconds=2))
DOWN = Temporary(FailureReason.SERVER_ERROR)
LOST = Unknown(FailureReason.CONNECTION_LOST)


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


async def test_message_in_flight_is_taken_over_however_long_its_holder_was_gone(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", on_unknown=UnknownPolicy.RESEND)
    house = Delivering(engine, [destination_of(hook)])

    async def die(_message: object) -> None:
        raise asyncio.CancelledError

    hook.before_answer = die
    await house.see("a")
    with pytest.raises(asyncio.CancelledError):
        await house.engine().run_due()
    hook.before_answer = None
    await house.clock.advance(timedelta(days=40))

    await house.engine().run_due()

    (attempt,) = await house.attempts()
    assert (attempt["outcome"], attempt["reason"]) == ("unknown", "interrupted")
