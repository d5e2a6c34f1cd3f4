"""Workers, observers and people at the same time: nobody waits for another for ever, and nothing doubles."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.attention import Attention
from reconciler.listing import find_notification
from reconciler.replanning import Replanner
from reconciler.routes import Escalation
from reconciler.states import AttentionState
from tests.support.delivering import NAMESPACE, Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of
from tests.support.stories import route

COUNT = 24
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("window", [None, MINUTE], ids=["one by one", "digests"])
async def test_sending_settling_acknowledging_and_planning_anew_at_once(
    engine: AsyncEngine, window: timedelta | None
) -> None:
    channels = [ScriptedChannel("ops"), ScriptedChannel("mail")]
    insistent = route(
        "ops",
        "mail",
        remind_every=MINUTE,
        digest_window=window,
        escalate=(Escalation(3 * MINUTE, ("mail",)),),
    )
    house = Delivering(engine, [destination_of(one) for one in channels], routes=[insistent])
    workers = [house.engine() for _ in range(2)]
    names = [f"r{number:02}" for number in range(COUNT)]
    for name in names:
        await house.see(name)
    ids = {name: await find_notification(engine, name, NAMESPACE) for name in names}
    people = Attention(engine, house.clock, lambda: house.routing, actor="ada")
    replanner = Replanner(engine, house.clock, lambda: house.routing, page=5)

    for turn in range(8):
        await house.clock.advance(MINUTE)
        over, busy = names[turn * 3], names[turn * 3 + 1]
        await asyncio.gather(
            *(worker.run_due() for worker in workers),
            house.see(over, AttentionState.RESOLVED),
            people.acknowledge(ids[busy], 2 * MINUTE),
            replanner.matching(insistent.match),
        )
    for _ in range(3):
        await house.clock.advance(MINUTE)
        await workers[0].run_due()

    rows = await house.deliveries()
    keys = [(row["notification_id"], row["destination"], row["purpose"]) for row in rows]
    assert len(keys) == len(set(keys))
    settled = {ids[names[turn * 3]] for turn in range(8)}
    waiting = [row for row in rows if row["status"] in ("pending", "leased", "unknown")]
    assert not [row for row in waiting if row["notification_id"] in settled]
    for channel in channels:
        told = [
            (message.purpose, item.attention_id)
            for message, _ in channel.sent
            for item in message.items
            if message.purpose != "settle"
        ]
        openings = [name for purpose, name in told if purpose in ("open", "digest:1")]
        assert len(openings) == len(set(openings))
        assert max(channel.accepted.values()) == 1
    assert {row["notification_id"] for row in waiting if row["purpose"].startswith("reminder")} == (
        set(ids.values()) - settled
    )
