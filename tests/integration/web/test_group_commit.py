"""What waits at the same moment is committed together, and everybody gets the answer to their own request."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import SystemClock
from reconciler.handoff_store import HandoffStore
from reconciler.notifications import Notifications
from reconciler.references import Observation, Request
from reconciler.states import AttentionState, Evidence
from reconciler.tables import NOTIFICATIONS
from tests.support.handoff import reference, routing
from worker.web.intake import Batch, Intake, rounds
from worker.web.models import ReferenceIn
from worker.web.refusals import Code, Refused

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def observation(number: int, state: AttentionState = AttentionState.ACTIVE, *, shown: bool = True) -> Observation:
    made = ReferenceIn.model_validate(reference(number, session_id=f"s-{number}")).reference()
    reason = Evidence.CURRENT_ACTION if state is AttentionState.ACTIVE else Evidence.DURABLE_CLOSURE
    return Observation(made, state, reason, NOW, Request() if shown else None)


def intake(engine: AsyncEngine, **options: Any) -> Intake:
    notifications = Notifications(engine, SystemClock(), routing)
    return Intake("prod", notifications, HandoffStore(engine, "prod"), **options)


async def test_many_waiting_requests_share_a_few_commits(engine: AsyncEngine) -> None:
    commits: list[int] = []
    event.listen(engine.sync_engine, "commit", lambda _connection: commits.append(1))
    group = intake(engine)

    verify = await asyncio.gather(
        *(group.submit(Batch([observation(number)], f"s-{number % 7}")) for number in range(1, 41))
    )

    assert len(commits) <= 4
    async with engine.connect() as connection:
        assert len((await connection.execute(select(NOTIFICATIONS.c.id))).all()) == 40
    assert verify[0] == []  # of its own session nothing else is open
    assert {item.session_id for item in verify[7]} == {"s-1"}  # its own (8) is another session


async def test_same_request_said_twice_at_once_is_one_and_settled(engine: AsyncEngine) -> None:
    group = intake(engine)

    await asyncio.gather(
        group.submit(Batch([observation(1)])),
        group.submit(Batch([observation(1)])),
        group.submit(Batch([observation(1, AttentionState.RESOLVED, shown=False)])),
    )

    async with engine.connect() as connection:
        assert (await connection.execute(select(NOTIFICATIONS.c.state))).scalars().all() == ["resolved"]


async def test_failure_of_the_database_reaches_everybody_who_waited(sqlite_engine: AsyncEngine) -> None:
    def refuse(_connection: Any) -> None:
        raise OperationalError("BEGIN", {}, Exception("database is locked"))

    event.listen(sqlite_engine.sync_engine, "begin", refuse)
    group = intake(sqlite_engine)

    answers = await asyncio.gather(*(group.submit(Batch([observation(n)])) for n in (1, 2)), return_exceptions=True)
    event.remove(sqlite_engine.sync_engine, "begin", refuse)

    assert [type(answer) for answer in answers] == [OperationalError, OperationalError]
    assert await group.submit(Batch([observation(1)])) == ()


async def test_request_that_gave_up_is_not_waited_for(sqlite_engine: AsyncEngine) -> None:
    group = intake(sqlite_engine, max_waiting=2)
    first = asyncio.create_task(group.submit(Batch([observation(1)])))
    second = asyncio.create_task(group.submit(Batch([observation(2)])))
    await asyncio.sleep(0)

    with pytest.raises(Refused) as refused:
        await group.submit(Batch([observation(3)]))
    second.cancel()
    await first
    await group.submit(Batch([observation(4)]))

    assert refused.value.code is Code.DATABASE_BUSY
    async with sqlite_engine.connect() as connection:
        found = (await connection.execute(select(NOTIFICATIONS.c.session_id))).scalars().all()
    assert sorted(found) == ["s-1", "s-4"]


def test_rounds_keep_each_references_order() -> None:
    first, second = observation(1), observation(2)
    later = observation(1, AttentionState.RESOLVED, shown=False)

    assert rounds([first, second, later]) == [[first, second], [later]]
    assert rounds([]) == []
