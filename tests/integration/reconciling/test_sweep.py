"""A pass sees what it sees: whatever keeps it from the whole makes it incomplete, and absence settles nothing."""

from datetime import timedelta

import pytest

from reconciler.sources.protocol import Incomplete
from reconciler.sweep import Mode
from tests.support.paging_source import BEGINNING, RESOLVED, UNAVAILABLE, observation, requests
from tests.support.reconciling import NAMESPACE, Reconciling


async def test_full_pass_enrolls_everything_and_is_complete(reconciling: Reconciling) -> None:
    reconciling.source.pending = requests(range(1, 451))

    done = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert done is not None
    assert (done.pages, done.rows_seen, done.is_complete) == (3, 450, True)
    assert len(await reconciling.states()) == 450
    assert (await reconciling.namespaces.get(NAMESPACE)).complete_since == BEGINNING


async def test_absence_closes_nothing_and_the_exact_question_does(reconciling: Reconciling) -> None:
    reconciling.source.pending = requests([1, 2])
    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    reconciling.source.settle(1, UNAVAILABLE)
    reconciling.source.settle(2, RESOLVED)

    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert await reconciling.states() == {"attention_0001": "unavailable", "attention_0002": "resolved"}
    assert sorted(reconciling.source.observed) == ["attention_0001", "attention_0002"]


async def test_row_that_the_pages_show_is_not_asked_about(reconciling: Reconciling) -> None:
    reconciling.source.pending = requests(range(1, 251))
    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert reconciling.source.observed == []


@pytest.mark.parametrize("problem", [Incomplete.PENDING_ACTION_ISSUES, Incomplete.UNPROJECTABLE_ACTION])
async def test_problem_of_a_page_makes_the_pass_incomplete(reconciling: Reconciling, problem: Incomplete) -> None:
    reconciling.source.pending = requests([1])
    reconciling.source.problems = frozenset({problem})

    done = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert done is not None
    assert not done.is_complete
    assert (await reconciling.passes())[-1].problems == problem.value
    assert (await reconciling.namespaces.get(NAMESPACE)).complete_since is None


async def test_failing_store_resumes_where_it_stopped_and_verifies_all_the_same(reconciling: Reconciling) -> None:
    reconciling.source.pending = requests(range(1, 501))
    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    reconciling.source.settle(500, RESOLVED)
    reconciling.source.fails_at_page = 1

    failed = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    stopped_at = (await reconciling.namespaces.get(NAMESPACE)).scan_cursor
    reconciling.source.fails_at_page = None
    resumed = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert failed is not None
    assert failed.problems == {Incomplete.STORE_ERROR}
    assert (await reconciling.states())["attention_0500"] == "resolved"
    assert stopped_at == "200"
    assert resumed is not None
    assert (resumed.pages, resumed.is_complete) == (2, True)


async def test_page_budget_resumes_until_the_whole_was_seen(engine: object) -> None:
    reconciling = Reconciling(engine, page_budget=2)  # type: ignore[arg-type]
    reconciling.source.pending = requests(range(1, 901))

    passes = [await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL) for _ in range(3)]

    assert [sorted(done.problems) for done in passes if done] == [["page_budget"], ["page_budget"], []]
    assert len(await reconciling.states()) == 900
    assert (await reconciling.namespaces.get(NAMESPACE)).scan_cursor is None


async def test_issue_of_an_earlier_part_keeps_the_resumed_pass_incomplete(engine: object) -> None:
    reconciling = Reconciling(engine, page_budget=1)  # type: ignore[arg-type]
    reconciling.source.pending = requests(range(1, 301))
    reconciling.source.problems = frozenset({Incomplete.PENDING_ACTION_ISSUES})
    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    reconciling.source.problems = frozenset()

    done = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert done is not None
    assert done.has_ended
    assert not done.is_complete


async def test_repeated_cursor_ends_the_pass_as_incomplete(reconciling: Reconciling) -> None:
    reconciling.source.pending = requests(range(1, 901))
    reconciling.source.cursor_of = lambda _end: "200"

    done = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert done is not None
    assert done.problems == {Incomplete.REPEATED_CURSOR}
    assert len(reconciling.source.pages) == 2


async def test_more_without_a_cursor_is_neither_complete_nor_covered(reconciling: Reconciling) -> None:
    reconciling.source.pending = requests([1])
    reconciling.source.problems = frozenset({Incomplete.HAS_MORE})

    done = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    remembered = await reconciling.namespaces.get(NAMESPACE)
    assert done is not None
    assert (done.is_complete, done.pages) == (False, 1)
    assert (remembered.complete_since, remembered.covered_since, remembered.scan_cursor) == (None, None, None)


async def test_unreachable_store_makes_requests_unavailable_and_they_recover(reconciling: Reconciling) -> None:
    reconciling.source.pending = requests([1])
    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    reconciling.source.is_down = True

    down = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    while_down = await reconciling.states()
    reconciling.source.is_down = False
    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert down is not None
    assert not down.is_complete
    assert while_down == {"attention_0001": "unavailable"}
    assert await reconciling.states() == {"attention_0001": "active"}


async def test_reference_that_stays_unavailable_is_asked_less_and_less_often(reconciling: Reconciling) -> None:
    reconciling.source.pending = requests([1])
    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    reconciling.source.settle(1, UNAVAILABLE)
    asked = []

    for minute in range(240):
        before = len(reconciling.source.observed)
        await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
        if len(reconciling.source.observed) > before:
            asked.append(minute)
        await reconciling.clock.advance(timedelta(minutes=1))

    assert asked == [0, 1, 2, 4, 8, 16, 32, 64, 124, 184]


async def test_head_pass_reads_only_what_changed_and_is_never_complete(reconciling: Reconciling) -> None:
    reconciling.source.pending = requests(range(1, 401))
    await reconciling.clock.advance(timedelta(hours=1))
    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    await reconciling.clock.advance(timedelta(minutes=5))
    newest = [observation(number, at=reconciling.clock.now()) for number in range(1001, 1006)]
    reconciling.source.pending = newest + reconciling.source.pending
    reconciling.source.pages.clear()

    done = await reconciling.sweeper.sweep(NAMESPACE, Mode.HEAD)

    assert done is not None
    assert reconciling.source.pages == [(None, 25)]
    assert (done.rows_changed, done.is_complete) == (5, False)
    assert reconciling.source.observed == []


async def test_another_store_under_the_name_is_refused_until_accepted(reconciling: Reconciling) -> None:
    reconciling.source.pending = requests([1])
    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    reconciling.source.store = "store-2"
    reconciling.source.pending = requests([2])

    refused = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    states_while_refused = await reconciling.states()
    await reconciling.namespaces.accept(NAMESPACE, "store-2", actor="alice")
    accepted = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert refused is not None
    assert refused.problems == {Incomplete.WRONG_STORE}
    assert states_while_refused == {"attention_0001": "active"}
    assert reconciling.book.believed(NAMESPACE) is not None
    assert accepted is not None
    assert accepted.is_complete


async def test_second_sweeper_of_a_namespace_waits_its_turn(reconciling: Reconciling) -> None:
    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    async with reconciling.sweeper._leases.hold(f"sweep:{NAMESPACE}", timedelta(minutes=1)):
        assert await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL) is None
        await reconciling.clock.advance(timedelta(minutes=2))
        assert await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL) is not None


async def test_outage_asks_few_and_afterwards_a_settled_request_is_found_at_once(reconciling: Reconciling) -> None:
    """However long it lasted: it is the store that was away, not the reference."""
    reconciling.source.pending = requests(range(1, 21))
    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    reconciling.source.is_down = True
    reconciling.source.observed.clear()

    for _ in range(8):
        await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
        await reconciling.clock.advance(timedelta(minutes=30))
    asked = len(reconciling.source.observed)
    during = set((await reconciling.states()).values())
    reconciling.source.is_down = False
    reconciling.source.settle(1, RESOLVED)
    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert asked <= 8 * 4
    assert during == {"unavailable"}
    states = await reconciling.states()
    assert states.pop("attention_0001") == "resolved"
    assert set(states.values()) == {"active"}


@pytest.mark.parametrize("mode", list(Mode))
async def test_pass_that_is_asked_for_during_a_pass_stays_due(reconciling: Reconciling, mode: Mode) -> None:
    """What this one has read already may be what the other is wanted for."""

    async def want() -> None:
        await reconciling.clock.advance(timedelta(seconds=1))
        await reconciling.namespaces.want_full()
        await reconciling.namespaces.want_head([NAMESPACE])

    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    reconciling.source.on_page = want
    await reconciling.sweeper.sweep(NAMESPACE, mode)

    remembered = await reconciling.namespaces.get(NAMESPACE)
    assert remembered.sweep_due_at <= reconciling.clock.now()
    assert remembered.head_due_at <= reconciling.clock.now()


async def test_bug_of_a_source_leaves_a_recorded_incomplete_pass_that_verified_the_rest(
    reconciling: Reconciling,
) -> None:
    reconciling.source.pending = requests(range(3))
    await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    reconciling.source.settle(2, RESOLVED)
    reconciling.source.buggy = {observation(0).reference.session_id}

    passed = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert passed is not None
    assert passed.problems == {Incomplete.STORE_ERROR}
    assert (await reconciling.states())[observation(2).reference.attention_id] == "resolved"
    assert len(await reconciling.passes()) == 2
