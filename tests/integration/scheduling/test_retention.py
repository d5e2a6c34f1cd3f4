"""What is over and old goes; never what is open, never what waits for a person, never another namespace's."""

from datetime import timedelta

from sqlalchemy import insert, select

from reconciler.pause_store.tables import CAPTURES
from reconciler.reasons import Door
from reconciler.sightings import record_sightings
from reconciler.tables import NOTICES, NOTIFICATIONS, WITHHELD
from tests.support.paging_source import RESOLVED, observation
from tests.support.reconciling import NAMESPACE, Reconciling
from worker.housekeeping import Keep, Retention

DAY = timedelta(days=1)
KEEP = Keep(hints=7 * DAY, settled=30 * DAY, sweeps=7 * DAY, dead_entries=30 * DAY, audit=365 * DAY)


def retention(house: Reconciling) -> Retention:
    return Retention(house.engine, house.clock, KEEP)


async def test_settled_requests_go_and_open_ones_stay(reconciling: Reconciling) -> None:
    for number in (1, 2):
        await reconciling.notifications.apply(NAMESPACE, [observation(number)], door=Door.SWEEP)
    await reconciling.notifications.apply(NAMESPACE, [observation(1, RESOLVED)], door=Door.SWEEP)
    await reconciling.clock.advance(31 * DAY)

    await retention(reconciling).run()

    assert await reconciling.states() == {"attention_0002": "active"}


async def test_request_that_is_withheld_elsewhere_under_the_same_id_stays(reconciling: Reconciling) -> None:
    reference = observation().reference
    for namespace in ("old", "new"):
        await record_sightings(
            reconciling.engine, namespace, withheld=[reference], delegations=[], now=reconciling.clock.now()
        )
        await reconciling.clock.advance(20 * DAY)

    await retention(reconciling).run()

    assert [row.namespace for row in await reconciling.rows(select(WITHHELD))] == ["new"]


async def test_capture_of_an_open_request_stays(reconciling: Reconciling) -> None:
    await reconciling.notifications.apply(NAMESPACE, [observation(1)], door=Door.PUSH)
    open_id, other_id = observation(1).reference.attention_id, observation(2).reference.attention_id
    async with reconciling.engine.begin() as connection:
        for attention_id in (open_id, other_id):
            values = {
                column.name: "x" for column in CAPTURES.columns if not column.nullable and column.server_default is None
            }
            now = reconciling.clock.now()
            values |= {"namespace": NAMESPACE, "attention_id": attention_id}
            given = {"is_resumable": True, "captured_at": now}
            await connection.execute(insert(CAPTURES).values({**values, **given}))
    await reconciling.clock.advance(31 * DAY)

    await retention(reconciling).run()

    assert [row.attention_id for row in await reconciling.rows(select(CAPTURES))] == [open_id]


async def test_closed_notices_go_and_open_ones_stay(reconciling: Reconciling) -> None:
    now = reconciling.clock.now()
    values = {"kind": "destination_broken", "subject": "ops", "detail": "x", "opened_at": now}
    async with reconciling.engine.begin() as connection:
        await connection.execute(insert(NOTICES), [{**values, "closed_at": now}, {**values, "closed_at": None}])
    await reconciling.clock.advance(31 * DAY)

    await retention(reconciling).run()

    assert [row.closed_at for row in await reconciling.rows(select(NOTICES))] == [None]
    assert not await reconciling.rows(select(NOTIFICATIONS))
