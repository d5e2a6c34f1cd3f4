"""A request that stays unavailable is told to the operator once, closed when it recovers, and never resolved."""

from datetime import timedelta

from sqlalchemy import select

from reconciler.overdue import OverdueNotices
from reconciler.reasons import Door
from reconciler.tables import NOTICES
from tests.support.paging_source import ACTIVE, UNREACHABLE, observation
from tests.support.reconciling import NAMESPACE, TARGETS, Reconciling


def notices_of(reconciling: Reconciling) -> OverdueNotices:
    return OverdueNotices(
        reconciling.engine, reconciling.clock, after=timedelta(hours=1), targets=lambda: [TARGETS["mail"]]
    )


async def make(reconciling: Reconciling, numbers: range) -> None:
    for what in (ACTIVE, UNREACHABLE):
        observations = [observation(number, what) for number in numbers]
        await reconciling.notifications.apply(NAMESPACE, observations, door=Door.SWEEP)


async def open_subjects(reconciling: Reconciling) -> list[str]:
    rows = await reconciling.rows(select(NOTICES.c.subject).where(NOTICES.c.closed_at.is_(None)))
    return sorted(row.subject for row in rows)


async def test_overdue_request_is_one_notice_however_often_it_is_looked_at(reconciling: Reconciling) -> None:
    await make(reconciling, range(1, 2))
    notices = notices_of(reconciling)

    await notices.run()
    too_early = await open_subjects(reconciling)
    await reconciling.clock.advance(timedelta(minutes=61))
    for _ in range(3):
        await notices.run()

    assert too_early == []
    assert await open_subjects(reconciling) == ["prod attention_0001"]
    told = [row for row in await reconciling.deliveries() if row[2] == "notice"]
    assert [recipient for _, recipient, _, _ in told] == ["a@example.com", "b@example.com"]


async def test_recovered_request_closes_its_notice(reconciling: Reconciling) -> None:
    await make(reconciling, range(1, 2))
    await reconciling.clock.advance(timedelta(minutes=61))
    await notices_of(reconciling).run()

    await reconciling.notifications.apply(NAMESPACE, [observation()], door=Door.SWEEP)
    await notices_of(reconciling).run()

    assert await open_subjects(reconciling) == []


async def test_outage_of_many_requests_is_one_notice(reconciling: Reconciling) -> None:
    await make(reconciling, range(1, 11))
    await reconciling.clock.advance(timedelta(minutes=61))

    await notices_of(reconciling).run()

    assert await open_subjects(reconciling) == ["prod"]
