"""Passes over real stores: what keeps one from the whole, and what the next one finds. Absence settles nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from cayu.sessions import PendingActionResultTooLarge

from reconciler.errors import SourceUnavailable
from reconciler.sources.protocol import Incomplete
from reconciler.sweep import Mode, Pass
from tests.contract.cayu.conftest import Case
from tests.support.reconciling import NAMESPACE, Reconciling
from tests.support.small_pages import SmallPages

# The requests of the paused store: of its own sessions, and of the children of two delegating parents.
OPEN = 6


async def full(reconciling: Reconciling) -> Pass:
    passed = await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    assert passed is not None
    return passed


async def replace_query(case: Case, change: Callable[[Any, Any], Any]) -> None:
    """Let `change` (of a query and its real result) stand for what the store answers from now on."""
    store = (await case.source._opened()).store
    real = store.query_pending_actions

    async def query_pending_actions(query: Any) -> Any:
        return change(query, await real(query))

    store.query_pending_actions = query_pending_actions


async def test_cursor_is_followed_with_unchanged_filters_to_the_end(paused: Case) -> None:
    queries: list[Any] = []

    def remember(query: Any, result: Any) -> Any:
        queries.append(query)
        return result

    await replace_query(paused, remember)
    reconciling = Reconciling(paused.reconciling.engine, source=SmallPages(paused.source, 3))  # type: ignore[arg-type]

    passed = await full(reconciling)

    assert passed.is_complete
    assert passed.pages == len(queries) > 2
    assert len({query.model_copy(update={"cursor": None}).model_dump_json() for query in queries}) == 1
    assert len(await paused.sessions()) == OPEN


async def test_row_that_moves_between_pages_is_missed_and_found_by_the_next_pass(own: Case) -> None:
    """A change brings a session to the front: behind a cursor that has passed there already."""
    before = [action.session.id for action in await own.store.actions()]
    moved = before[-1]

    async def touch() -> None:
        async with own.store.runtime() as (store, _app):
            await store.update_labels(moved, {"touched": "yes"})

    pages = SmallPages(own.source, 4, between=touch)
    reconciling = Reconciling(own.reconciling.engine, source=pages)  # type: ignore[arg-type]

    await full(reconciling)
    missed = await own.sessions()
    await full(own.reconciling)

    assert moved not in missed
    assert (await own.sessions())[moved] == "active"


async def test_enrolled_row_that_a_pass_misses_is_asked_about_and_stays_active(own: Case) -> None:
    await full(own.reconciling)
    moved = [action.session.id for action in await own.store.actions()][-1]

    async def touch() -> None:
        async with own.store.runtime() as (store, _app):
            await store.update_labels(moved, {"touched": "yes"})

    reconciling = Reconciling(own.reconciling.engine, source=SmallPages(own.source, 4, between=touch))  # type: ignore[arg-type]

    passed = await full(reconciling)

    assert passed.verified == 1
    assert (await own.sessions())[moved] == "active"


async def test_page_budget_leaves_the_pass_incomplete_until_all_was_seen(paused: Case) -> None:
    pages = SmallPages(paused.source, 5)
    reconciling = Reconciling(paused.reconciling.engine, source=pages, page_budget=1)  # type: ignore[arg-type]

    passes = [await full(reconciling)]
    while not passes[-1].has_ended:
        passes.append(await full(reconciling))

    assert all(passed.problems == {Incomplete.PAGE_BUDGET} for passed in passes[:-1])
    assert passes[-1].is_complete
    assert len(pages.asked) == len(set(pages.asked)) == len(passes) > 1
    assert len(await paused.sessions()) == OPEN


async def test_cursor_that_the_store_refuses_starts_a_new_scan(paused: Case) -> None:
    await full(paused.reconciling)
    await paused.reconciling.namespaces.save(NAMESPACE, {"scan_cursor": "no cursor of this store"})

    refused = await full(paused.reconciling)
    again = await full(paused.reconciling)

    assert (refused.problems, refused.is_complete) == ({Incomplete.CURSOR_REFUSED}, False)
    assert again.is_complete
    assert set((await paused.sessions()).values()) == {"active"}


async def test_result_too_large_is_read_in_smaller_pages(paused: Case) -> None:
    def refuse_large(query: Any, result: Any) -> Any:
        if query.limit > 4:
            raise PendingActionResultTooLarge(query.max_result_bytes)
        return result

    await replace_query(paused, refuse_large)

    passed = await full(paused.reconciling)

    assert passed.is_complete
    assert len(await paused.sessions()) == OPEN


async def test_row_too_large_to_be_read_alone_makes_the_pass_incomplete(paused: Case) -> None:
    await full(paused.reconciling)

    def refuse(query: Any, _result: Any) -> Any:
        raise PendingActionResultTooLarge(query.max_result_bytes)

    await replace_query(paused, refuse)

    passed = await full(paused.reconciling)

    assert (passed.problems, passed.is_complete) == ({Incomplete.PAGE_TOO_LARGE}, False)
    assert not set((await paused.sessions()).values()) - {"active", "unavailable"}


async def test_action_without_an_incarnation_is_counted_and_makes_the_pass_incomplete(paused: Case) -> None:
    """A legacy row: neither an identity nor a delegation."""

    def forget_one(_query: Any, result: Any) -> Any:
        legacy = [
            action.model_copy(update={"session": action.session.model_copy(update={"instance_id": None})})
            if action.session.id == "ask"
            else action
            for action in result.actions
        ]
        return result.model_copy(update={"actions": legacy})

    await replace_query(paused, forget_one)

    passed = await full(paused.reconciling)

    assert (passed.problems, passed.is_complete) == ({Incomplete.UNPROJECTABLE_ACTION}, False)
    assert "ask" not in await paused.sessions()
    assert len(await paused.sessions()) == OPEN - 1


async def test_query_that_has_more_than_its_cursor_says_makes_the_pass_incomplete(paused: Case) -> None:
    await replace_query(
        paused, lambda _query, result: result.model_copy(update={"has_more": True, "next_cursor": None})
    )

    passed = await full(paused.reconciling)

    assert (passed.problems, passed.is_complete) == ({Incomplete.HAS_MORE}, False)


async def test_outage_settles_nothing_and_passes(own: Case) -> None:
    await full(own.reconciling)
    await own.store.break_down()

    passed = await full(own.reconciling)

    assert not passed.is_complete
    assert passed.problems == {Incomplete.STORE_ERROR}
    assert set((await own.sessions()).values()) == {"unavailable"}
    assert (await own.reconciling.passes())[-1].problems == "store_error"


async def test_references_are_verified_apart_from_a_scan_that_fails(own: Case) -> None:
    await full(own.reconciling)
    await own.store.settle("ask", "answer")

    class ScanFails(SmallPages):
        async def page(self, *_arguments: Any, **_options: Any) -> Any:
            raise SourceUnavailable(Incomplete.STORE_ERROR, "the scan failed")

    reconciling = Reconciling(own.reconciling.engine, source=ScanFails(own.source, 1))  # type: ignore[arg-type]

    passed = await full(reconciling)

    assert not passed.is_complete
    sessions = await own.sessions()
    assert sessions.pop("ask") == "resolved"
    assert set(sessions.values()) == {"active"}


async def test_head_pass_reads_one_page_and_proves_nothing(own: Case) -> None:
    await full(own.reconciling)
    await own.store.settle("ask", "answer")
    await own.reconciling.clock.advance(timedelta(minutes=5))

    passed = await own.reconciling.sweeper.sweep(NAMESPACE, Mode.HEAD)

    assert passed is not None
    assert (passed.pages, passed.verified, passed.is_complete) == (1, 0, False)
    assert (await own.sessions())["ask"] == "active"
