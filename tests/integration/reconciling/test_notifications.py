"""One notification per request, and states that only move forward, on both databases."""

import asyncio

from sqlalchemy import update

from reconciler.reasons import Door
from reconciler.tables import DELIVERIES
from tests.support.paging_source import (
    ACTIVE,
    CANCELLED,
    EXPIRED,
    RESOLVED,
    SUPERSEDED,
    UNAVAILABLE,
    UNREACHABLE,
    observation,
)
from tests.support.reconciling import NAMESPACE, Reconciling


async def apply(reconciling: Reconciling, *observations: object, namespace: str = NAMESPACE) -> object:
    return await reconciling.notifications.apply(namespace, list(observations), door=Door.SWEEP)  # type: ignore[arg-type]


async def test_new_request_is_enrolled_once_and_opened_for_every_recipient(reconciling: Reconciling) -> None:
    await apply(reconciling, observation())
    await apply(reconciling, observation())

    assert await reconciling.states() == {"attention_0001": "active"}
    assert await reconciling.deliveries() == [
        ("ops", "ops", "open", "pending"),
        ("mail", "a@example.com", "open", "pending"),
        ("mail", "b@example.com", "open", "pending"),
    ]
    assert await reconciling.history() == [(None, "active", False)]
    assert reconciling.rings == 1


async def test_unchanged_observation_writes_nothing(reconciling: Reconciling) -> None:
    await apply(reconciling, observation())

    applied = await apply(reconciling, observation())

    assert (applied.new, applied.changed, applied.conflicts) == (0, 0, 0)  # type: ignore[attr-defined]
    assert reconciling.rings == 1


async def test_settled_before_sending_cancels_the_opening_and_settles_nothing(reconciling: Reconciling) -> None:
    await apply(reconciling, observation())

    await apply(reconciling, observation(1, RESOLVED, request=None))

    assert {(purpose, status) for _, _, purpose, status in await reconciling.deliveries()} == {("open", "cancelled")}


async def test_settle_is_planned_where_something_was_or_may_have_been_sent(reconciling: Reconciling) -> None:
    await apply(reconciling, observation())
    async with reconciling.engine.begin() as connection:
        for recipient, status in (("ops", "sent"), ("a@example.com", "leased"), ("b@example.com", "pending")):
            await connection.execute(
                update(DELIVERIES).where(DELIVERIES.c.recipient == recipient).values(status=status)
            )

    await apply(reconciling, observation(1, CANCELLED, request=None))

    settles = [row for row in await reconciling.deliveries() if row[2] == "settle"]
    assert settles == [("ops", "ops", "settle", "pending"), ("mail", "a@example.com", "settle", "pending")]


async def test_late_opening_after_settlement_changes_nothing(reconciling: Reconciling) -> None:
    await apply(reconciling, observation())
    await apply(reconciling, observation(1, RESOLVED, request=None))
    before = await reconciling.deliveries()

    await apply(reconciling, observation(1, ACTIVE))
    await apply(reconciling, observation(1, UNAVAILABLE))

    assert await reconciling.states() == {"attention_0001": "resolved"}
    assert await reconciling.deliveries() == before


async def test_another_terminal_state_is_a_conflict_recorded_once(reconciling: Reconciling) -> None:
    await apply(reconciling, observation())
    await apply(reconciling, observation(1, RESOLVED))

    for _ in range(3):
        await apply(reconciling, observation(1, SUPERSEDED))

    assert await reconciling.states() == {"attention_0001": "resolved"}
    assert await reconciling.history() == [
        (None, "active", False),
        ("active", "resolved", False),
        ("resolved", "superseded", True),
    ]


async def test_unavailable_keeps_what_is_planned_and_recovers(reconciling: Reconciling) -> None:
    await apply(reconciling, observation())
    before = await reconciling.deliveries()

    await apply(reconciling, observation(1, UNREACHABLE, request=None))
    unreachable = await reconciling.states()
    await apply(reconciling, observation())

    assert unreachable == {"attention_0001": "unavailable"}
    assert await reconciling.states() == {"attention_0001": "active"}
    assert await reconciling.deliveries() == before


async def test_unknown_request_that_is_already_settled_is_not_enrolled(reconciling: Reconciling) -> None:
    await apply(reconciling, observation(1, EXPIRED))
    await apply(reconciling, observation(2, ACTIVE, request=None))

    assert await reconciling.states() == {}


async def test_same_attention_id_in_two_namespaces_stays_apart(reconciling: Reconciling) -> None:
    await apply(reconciling, observation())
    await apply(reconciling, observation(), namespace="staging")

    await apply(reconciling, observation(1, RESOLVED), namespace="staging")

    assert await reconciling.states() == {"attention_0001": "active"}
    assert await reconciling.states("staging") == {"attention_0001": "resolved"}


async def test_racing_observers_of_different_ends_leave_one_winner(reconciling: Reconciling) -> None:
    numbers = range(1, 21)
    await apply(reconciling, *(observation(number) for number in numbers))
    async with reconciling.engine.begin() as connection:
        await connection.execute(update(DELIVERIES).values(status="sent"))

    ends = (RESOLVED, CANCELLED, SUPERSEDED, RESOLVED, EXPIRED)
    await asyncio.gather(*(apply(reconciling, *(observation(number, end) for number in numbers)) for end in ends))

    changes = [row for row in await reconciling.history() if row[0] is not None and not row[2]]
    settles = [row for row in await reconciling.deliveries() if row[2] == "settle"]
    assert len(changes) == len(numbers)
    assert len(settles) == 3 * len(numbers)


async def test_racing_enrollments_of_one_request_leave_one(reconciling: Reconciling) -> None:
    await asyncio.gather(*(apply(reconciling, observation()) for _ in range(6)))

    assert await reconciling.history() == [(None, "active", False)]
    assert len(await reconciling.deliveries()) == 3
