"""A person gives dead letters another try, and reads why things are as they are."""

from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.states import AttentionState
from reconciler.story import deliveries, story
from reconciler.tables import AUDIT
from tests.support.delivering import NAMESPACE, Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of
from worker.channels.outcomes import FailureReason, Permanent, Sent, Temporary, Unknown
from worker.channels.protocol import UnknownPolicy
from worker.delivery.backoff import BackOff
from worker.delivery.limits import Limits
from worker.delivery.redrive import Redrive

REJECTED = Permanent(FailureReason.REJECTED)
DOWN = Temporary(FailureReason.SERVER_ERROR)


async def test_redriven_delivery_is_sent_and_audited(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", script=[REJECTED])
    house = Delivering(engine, [destination_of(hook)])
    await house.see("a")
    await house.engine().run_due()
    dead = await house.delivery()

    redriven = await Redrive(engine, house.clock, actor="anna").one(dead["id"])
    assert (await house.delivery())["reason"] == "redriven"
    await house.engine().run_due()

    assert redriven == 1
    assert (await house.delivery())["status"] == "sent"
    assert [attempt["number"] for attempt in await house.attempts()] == [1, 2]
    async with engine.connect() as connection:
        (entry,) = (await connection.execute(select(AUDIT))).all()
    assert (entry.actor, entry.action, entry.subject) == ("anna", "redrive", f"delivery {dead['id']}")


async def test_bounds_start_afresh_after_a_redrive(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", script=[DOWN] * 100)
    house = Delivering(engine, [destination_of(hook)])
    worker = house.engine(limits=Limits(backoff=BackOff(max_attempts=3, max_age=timedelta(minutes=5))))
    await house.see("a")
    await worker.run_due()
    await house.pass_time(worker, timedelta(minutes=10), timedelta(seconds=10))
    assert len(hook.tries) == 3
    await house.clock.advance(timedelta(days=2))

    await Redrive(engine, house.clock, actor="anna").all_dead()
    await worker.run_due()
    await house.pass_time(worker, timedelta(minutes=10), timedelta(seconds=10))

    assert len(hook.tries) == 6
    assert (await house.delivery())["status"] == "dead"


async def test_what_is_over_is_not_said_after_a_redrive(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", script=[REJECTED])
    house = Delivering(engine, [destination_of(hook)])
    await house.see("a")
    await house.engine().run_due()
    await house.see("a", AttentionState.RESOLVED)

    await Redrive(engine, house.clock, actor="anna").all_dead()
    await house.engine().run_due()

    assert len(hook.tries) == 1
    assert (await house.delivery(purpose="open"))["reason"] == "settled_before_sending"


async def test_destination_is_used_again_and_its_notice_stays_until_something_arrives(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", script=[Permanent(FailureReason.UNAUTHORIZED)] * 2)
    house = Delivering(engine, [destination_of(hook)])
    for name in ("a", "b"):
        await house.see(name)
    await house.engine().run_due()
    redrive = Redrive(engine, house.clock, actor="anna")

    assert await redrive.destination("hook") == 2
    assert (await house.destination("hook"))["broken_at"] is None
    assert [notice["closed_at"] for notice in await house.notices()] == [None]
    await house.engine().run_due()

    assert len(hook.sent) == 2
    assert len(await house.notices()) == 1
    assert (await house.notices())[0]["closed_at"] is not None


async def test_redriven_look_up_asks_before_it_sends(engine: AsyncEngine) -> None:
    slack = ScriptedChannel(
        "slack",
        script=[Unknown(FailureReason.TIMED_OUT)],
        found=[DOWN] * 100,
        on_unknown=UnknownPolicy.LOOK_UP,
    )
    house = Delivering(engine, [destination_of(slack)])
    worker = house.engine()
    await house.see("a")
    await worker.run_due()
    await house.pass_time(worker, timedelta(hours=2), timedelta(minutes=5))
    slack.found = [Sent("ts-1")]

    await Redrive(engine, house.clock, actor="anna").all_dead()
    await worker.run_due()

    assert (len(slack.tries), (await house.delivery())["provider_ref"]) == (1, "ts-1")


async def test_nothing_dead_is_nothing_redriven(sqlite_engine: AsyncEngine) -> None:
    house = Delivering(sqlite_engine, [destination_of(ScriptedChannel("hook"))])
    await house.see("a")
    await house.engine().run_due()

    assert await Redrive(sqlite_engine, house.clock, actor="anna").one((await house.delivery())["id"]) == 0


async def test_story_tells_everything_in_order(engine: AsyncEngine) -> None:
    hook = ScriptedChannel("hook", script=[DOWN])
    house = Delivering(engine, [destination_of(hook)])
    worker = house.engine()
    await house.see("a")
    await worker.run_due()
    await house.pass_time(worker, timedelta(seconds=5), timedelta(seconds=5))
    await house.clock.advance(timedelta(seconds=1))
    await house.see("a", AttentionState.RESOLVED)
    await worker.run_due()

    (listed, _) = [row async for row in deliveries(engine, namespace=NAMESPACE)]
    told = await story(engine, (await house.deliveries())[0]["notification_id"])

    assert [(entry["what"], entry["reason"], entry["purpose"]) for entry in told] == [
        ("state", "current_action", None),
        ("planned", "routed", "open"),
        ("attempt", "server_error", "open"),
        ("attempt", "sent", "open"),
        ("state", "durable_closure", None),
        ("planned", "settled", "settle"),
        ("attempt", "sent", "settle"),
    ]
    assert "the source said active (current_action)" in told[2]["detail"]
    assert (listed["attention_id"], listed["status"], listed["attempts"], listed["next_attempt_at"]) == (
        "a",
        "sent",
        2,
        None,
    )
    assert list(listed) == [
        "id",
        "namespace",
        "attention_id",
        "destination",
        "channel",
        "recipient",
        "purpose",
        "status",
        "attempts",
        "reason",
        "provider_ref",
        "next_attempt_at",
    ]


async def test_channel_is_told_since_when_a_message_may_be_there(engine: AsyncEngine) -> None:
    slack = ScriptedChannel(
        "slack", script=[Unknown(FailureReason.CONNECTION_LOST)], found=[DOWN] * 100, on_unknown=UnknownPolicy.LOOK_UP
    )
    house = Delivering(engine, [destination_of(slack)])
    await house.see("a")
    began_at = house.clock.now()
    worker = house.engine()
    await worker.run_due()
    await house.pass_time(worker, timedelta(hours=2), timedelta(minutes=10))
    await house.clock.advance(timedelta(days=7))
    await Redrive(engine, house.clock, actor="test").all_dead()

    await worker.run_due()

    assert slack.look_ups[-1].since == began_at
