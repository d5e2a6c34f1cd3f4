"""A hint only rings: what is true comes from the session's present view, and a hint is done only after a whole one."""

from datetime import timedelta

from reconciler.sources.protocol import Incomplete
from tests.support.paging_source import RESOLVED, UNAVAILABLE, UNREACHABLE, observation
from tests.support.reconciling import NAMESPACE, Reconciling


async def test_both_events_of_a_question_lead_to_one_notification(reconciling: Reconciling) -> None:
    reconciling.source.pending = [observation()]
    await reconciling.hint("session-1", "e1", "session.awaiting_user_input")
    await reconciling.hint("session-1", "e2", "session.interrupted")

    refreshed = await reconciling.refresher.round()

    assert refreshed.sessions == 1
    assert await reconciling.states() == {"attention_0001": "active"}
    assert (await reconciling.inbox.counts()).unprocessed == 0


async def test_hint_of_a_settled_question_settles_by_the_exact_question(reconciling: Reconciling) -> None:
    reconciling.source.pending = [observation()]
    await reconciling.hint("session-1", "e1")
    await reconciling.refresher.round()
    reconciling.source.settle(1, RESOLVED)

    await reconciling.hint("session-1", "e2", "session.completed")
    await reconciling.refresher.round()

    assert await reconciling.states() == {"attention_0001": "resolved"}


async def test_hints_stay_unprocessed_after_an_incomplete_view_and_are_tried_again(reconciling: Reconciling) -> None:
    reconciling.source.pending = [observation()]
    reconciling.source.problems = frozenset({Incomplete.PENDING_ACTION_ISSUES})
    await reconciling.hint("session-1", "e1")

    first = await reconciling.refresher.round()
    unprocessed = (await reconciling.inbox.counts()).unprocessed
    at_once = await reconciling.refresher.round()
    reconciling.source.problems = frozenset()
    await reconciling.clock.advance(timedelta(seconds=2))
    await reconciling.refresher.round()

    assert (first.incomplete, unprocessed) == (1, 1)
    assert at_once.sessions == 0
    assert first.retry_at is not None
    assert (await reconciling.inbox.counts()).unprocessed == 0


async def test_unreachable_store_keeps_hints_and_other_sessions_go_on(reconciling: Reconciling) -> None:
    reconciling.source.is_down = True
    await reconciling.hint("session-1", "e1")

    await reconciling.refresher.round()

    assert (await reconciling.inbox.counts()).unprocessed == 1
    assert await reconciling.states() == {}


async def test_follow_up_types_refresh_only_sessions_that_hold_an_open_request(reconciling: Reconciling) -> None:
    reconciling.source.pending = [observation(1)]
    await reconciling.hint("session-1", "e1")
    await reconciling.refresher.round()
    reconciling.source.pending.append(observation(2))
    reconciling.source.settle(1, RESOLVED)

    await reconciling.hint("session-1", "e2", "tool.call.completed")
    await reconciling.hint("session-2", "e3", "tool.call.completed")
    await reconciling.refresher.round()

    assert await reconciling.states() == {"attention_0001": "resolved"}
    assert (await reconciling.inbox.counts()).unprocessed == 0


async def test_unknown_session_makes_a_head_pass_due_once_per_burst(reconciling: Reconciling) -> None:
    await reconciling.namespaces.remember(NAMESPACE, "scripted", reconciling.source)
    await reconciling.namespaces.save(
        NAMESPACE,
        {
            "head_due_at": reconciling.clock.now() + timedelta(hours=1),
            "sweep_due_at": reconciling.clock.now() + timedelta(hours=1),
        },
    )
    reconciling.source.unknown_sessions = {"alias-1", "alias-2"}
    await reconciling.hint("alias-1", "e1")
    await reconciling.hint("alias-2", "e2")

    await reconciling.refresher.round()

    assert [due.namespace for due in await reconciling.namespaces.due([NAMESPACE])] == [NAMESPACE]
    assert (await reconciling.inbox.counts()).unprocessed == 0


async def test_hint_of_a_namespace_without_a_source_is_kept_and_shown(reconciling: Reconciling) -> None:
    await reconciling.hint("session-1", "e1", namespace="elsewhere")

    await reconciling.refresher.round()

    counts = await reconciling.inbox.counts()
    assert counts.namespaces["elsewhere"].unprocessed == 1


async def test_unavailable_answer_to_a_hint_leaves_the_request_open(reconciling: Reconciling) -> None:
    reconciling.source.pending = [observation()]
    await reconciling.hint("session-1", "e1")
    await reconciling.refresher.round()
    reconciling.source.settle(1, UNAVAILABLE)

    await reconciling.hint("session-1", "e2", "session.resumed")
    await reconciling.refresher.round()

    assert await reconciling.states() == {"attention_0001": "unavailable"}


async def test_outage_of_a_store_is_noticed_by_few_questions_and_ends_with_all_refreshed(
    reconciling: Reconciling,
) -> None:
    for number in range(50):
        await reconciling.hint(f"session-{number}", f"e{number}")
    reconciling.source.is_down = True

    await reconciling.refresher.round()
    asked = len(reconciling.source.asked_sessions)
    at_once = await reconciling.refresher.round()
    reconciling.source.is_down = False
    await reconciling.clock.advance(timedelta(minutes=2))
    await reconciling.refresher.round()

    assert asked <= 5
    assert at_once.sessions == 0
    assert at_once.retry_at is not None
    assert (await reconciling.inbox.counts()).unprocessed == 0


async def test_session_that_can_never_be_read_does_not_hold_up_the_others(reconciling: Reconciling) -> None:
    """More of them than make an outage: each round asks others."""
    reconciling.source.broken_sessions = {f"session-{number}" for number in range(4)}
    for number in range(10):
        await reconciling.hint(f"session-{number}", f"e{number}")

    first = await reconciling.refresher.round()
    assert first.retry_at is not None
    await reconciling.clock.advance(first.retry_at - reconciling.clock.now())
    await reconciling.refresher.round()

    assert (await reconciling.inbox.counts()).unprocessed == 4


async def test_nobody_wakes_up_for_hints_that_another_process_has_done(reconciling: Reconciling) -> None:
    reconciling.source.problems = frozenset({Incomplete.PENDING_ACTION_ISSUES})
    await reconciling.hint("session-1", "e1")
    await reconciling.refresher.round()
    await reconciling.inbox.mark_processed(await reconciling.inbox.unprocessed([NAMESPACE], limit=10))
    await reconciling.clock.advance(timedelta(seconds=10))

    refreshed = await reconciling.refresher.round()

    assert refreshed.retry_at is None


async def test_bug_of_a_source_over_one_session_does_not_hold_up_the_others(reconciling: Reconciling) -> None:
    reconciling.source.pending = [observation(1), observation(2)]
    reconciling.source.buggy = {"session-1"}
    await reconciling.hint("session-1", "e1")
    await reconciling.hint("session-2", "e2")

    refreshed = await reconciling.refresher.round()

    assert refreshed.incomplete == 1
    assert await reconciling.states() == {"attention_0002": "active"}
    assert (await reconciling.inbox.counts()).unprocessed == 1


async def test_hint_whose_exact_question_is_not_answered_is_asked_again_soon(reconciling: Reconciling) -> None:
    """Else what was settled would be shown by the next sweep only."""
    reconciling.source.pending = [observation()]
    await reconciling.hint("session-1", "e1")
    await reconciling.refresher.round()
    reconciling.source.settle(1, UNREACHABLE)
    await reconciling.hint("session-1", "e2", "session.completed")

    refreshed = await reconciling.refresher.round()
    reconciling.source.settle(1, RESOLVED)
    await reconciling.clock.advance(timedelta(seconds=2))
    await reconciling.refresher.round()

    assert refreshed.retry_at is not None
    assert await reconciling.states() == {"attention_0001": "resolved"}
    assert (await reconciling.inbox.counts()).unprocessed == 0
