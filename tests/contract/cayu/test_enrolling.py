"""What of a real store becomes a notification: every current request, no delegated parent, nobody who opted out."""

from datetime import timedelta

from sqlalchemy import select

from reconciler.reasons import Door
from reconciler.states import SUMMARIES, Kind
from reconciler.status import read_status
from reconciler.sweep import Mode
from reconciler.tables import NOTIFICATIONS
from tests.contract.cayu.conftest import Case
from tests.support.reconciling import NAMESPACE, Reconciling
from tests.support.sources import KnownIds, cayu_source
from worker.scripted.runtime import CONTENT_MARK


async def status_of_source(case: Case) -> dict[str, object]:
    [source] = (await read_status(case.reconciling.engine, case.reconciling.book, []))["sources"]
    return dict(source)


async def test_current_requests_are_enrolled_also_those_from_before_handbell(paused: Case) -> None:
    await paused.reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    sessions = await paused.sessions()
    assert {"ask", "approve", "expiring", "recover"} <= set(sessions)
    assert set(sessions.values()) == {"active"}


async def test_delegated_parents_get_no_message_and_their_children_one_each(paused: Case) -> None:
    await paused.reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    sessions = await paused.sessions()
    page = await paused.source.page(None, limit=200, known=KnownIds())
    ways = {way.session_id: way.child_session_id for way in page.delegations}
    assert not {"parent", "nested"} & set(sessions)
    assert len([session_id for session_id in sessions if session_id.startswith("cayu-child:")]) == 2
    assert ways["parent"] in sessions
    assert ways[ways["nested"]] in sessions, "the child of the child asks"
    openings = [row for row in await paused.reconciling.deliveries() if row[0] == "ops"]
    assert len(openings) == len(sessions)


async def test_parent_only_enrollment_shows_the_way_and_tells_nobody(paused: Case) -> None:
    source = cayu_source(paused.store.url, scope={"parents": ["parent"]})
    case = Case(paused.store, source, Reconciling(paused.reconciling.engine, source=source))  # type: ignore[arg-type]

    await case.reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    await source.close()

    [way] = (await status_of_source(case))["delegations"]  # type: ignore[misc]
    assert way["session_id"] == "parent"
    assert CONTENT_MARK not in repr(way)
    assert (await case.sessions(), await case.reconciling.deliveries()) == ({}, [])


async def test_withheld_sessions_are_enrolled_by_no_door_and_counted(paused: Case) -> None:
    """By a full pass, by a head pass and by a hint; the handoff's door is the sender's own, which leaves them out."""
    for mode in (Mode.FULL, Mode.HEAD):
        await paused.reconciling.sweeper.sweep(NAMESPACE, mode)
    for number, session_id in enumerate(["trial", "quiet"]):
        await paused.reconciling.hint(session_id, f"e{number}")
    await paused.reconciling.refresher.round()

    opted_out = {
        action.session.id
        for action in await paused.store.actions()
        if action.session.id in ("trial", "quiet") or action.session.parent_session_id == "quiet"
    }
    assert len(opted_out) == 3
    assert not opted_out & set(await paused.sessions())
    assert (await status_of_source(paused))["withheld"] == 2, "a delegating parent is no request of its own"
    assert (await paused.reconciling.inbox.counts()).unprocessed == 0


async def test_boundary_is_kept_shown_and_leaves_older_requests_out(paused: Case) -> None:
    await paused.reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    latest = max(row.paused_at for row in await paused.reconciling.rows(select(NOTIFICATIONS)))
    boundary = latest + timedelta(seconds=1)
    source = cayu_source(paused.store.url, enroll_after=boundary)
    namespaces = paused.reconciling.namespaces

    await namespaces.remember("later", "cayu", source, enrolled_after=boundary)
    await namespaces.remember("later", "cayu", source, enrolled_after=None)
    page = await source.page(None, limit=200, known=KnownIds())
    await source.close()

    assert page.active == ()
    assert (await namespaces.boundaries())["later"] == boundary
    sources = (await read_status(paused.reconciling.engine, paused.reconciling.book, []))["sources"]
    assert {row["namespace"]: row["enrolled_after"] for row in sources}["later"] == boundary.isoformat()


async def test_three_summaries_are_all_that_is_said_and_no_content_is_stored(paused: Case) -> None:
    await paused.reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    rows = await paused.reconciling.rows(select(NOTIFICATIONS))
    said = {row.kind: SUMMARIES[Kind(row.kind)] for row in rows}
    assert said == {
        "user_input": "User input required.",
        "tool_approval": "Tool approval required.",
        "manual_recovery": "Manual recovery required.",
    }
    assert CONTENT_MARK in repr(await paused.store.actions())
    assert CONTENT_MARK not in repr(rows)
    assert "Which region" not in repr(rows)


async def test_two_stores_under_two_namespaces_keep_their_requests_apart(paused: Case) -> None:
    """The same store twice stands for two: every attention id exists in both, and neither hides the other."""
    await paused.reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    page = await paused.source.page(None, limit=200, known=KnownIds())

    applied = await paused.reconciling.notifications.apply("staging", page.active, door=Door.SWEEP)

    assert applied.new == len(await paused.reconciling.states())
    assert await paused.reconciling.states("staging") == await paused.reconciling.states()
