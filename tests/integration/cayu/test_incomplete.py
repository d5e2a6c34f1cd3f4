"""What keeps a page from being complete is named, and never mistaken for an end."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from cayu.sessions import PendingActionQuery, PendingActionResultTooLarge

from reconciler.errors import SourceUnavailable
from reconciler.sources.cayu import CayuSource
from reconciler.sources.cayu_projection import observed
from reconciler.sources.protocol import Incomplete
from reconciler.states import AttentionState, Evidence
from tests.support.cayu_stores import CayuStore
from tests.support.sources import KnownIds, cayu_source, every_page, shown


@pytest.fixture
async def source(cayu_store: CayuStore) -> AsyncIterator[CayuSource]:
    source = cayu_source(cayu_store.url)
    yield source
    await source.close()


async def change_query(source: CayuSource, change: Callable[[Any, PendingActionQuery], Any]) -> None:
    """Let the real store answer through `change(query_pending_actions, query)`."""
    store: Any = (await source._opened()).store
    real = store.query_pending_actions
    store.query_pending_actions = lambda query: change(real, query)


async def test_action_too_large_to_project_is_an_issue(source: CayuSource) -> None:
    async def small(real: Any, query: PendingActionQuery) -> Any:
        return await real(query.model_copy(update={"max_result_bytes": 1024}))

    await change_query(source, small)

    pages = await every_page(source)
    view = await source.session("ask", known=KnownIds())

    assert any(Incomplete.PENDING_ACTION_ISSUES in page.problems for page in pages)
    assert Incomplete.PENDING_ACTION_ISSUES in view.problems


async def test_page_too_large_is_read_in_smaller_ones_within_the_same_call(source: CayuSource) -> None:
    asked = []

    async def at_most_three(real: Any, query: PendingActionQuery) -> Any:
        asked.append(query.limit)
        if query.limit > 3:
            raise PendingActionResultTooLarge(query.max_result_bytes)
        return await real(query)

    whole = await shown(source)
    await change_query(source, at_most_three)

    pages = await every_page(source)

    assert asked[:7] == [200, 100, 50, 25, 12, 6, 3]
    assert {item.reference for page in pages for item in page.active} == {item.reference for item in whole.values()}
    assert not any(page.problems for page in pages)


async def test_single_action_too_large_for_any_page_is_said(source: CayuSource) -> None:
    async def never(_real: Any, query: PendingActionQuery) -> Any:
        raise PendingActionResultTooLarge(query.max_result_bytes)

    await change_query(source, never)

    with pytest.raises(SourceUnavailable) as refused:
        await source.page(None, limit=200, known=KnownIds())

    assert refused.value.reason == Incomplete.PAGE_TOO_LARGE


async def test_failing_store_is_a_store_error_without_its_text(source: CayuSource) -> None:
    async def fail(_real: Any, _query: PendingActionQuery) -> Any:
        raise RuntimeError("password=hunter2")

    await change_query(source, fail)

    with pytest.raises(SourceUnavailable) as refused:
        await source.page(None, limit=200, known=KnownIds())

    assert refused.value.reason == Incomplete.STORE_ERROR
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("update", "problem"),
    [
        ({"next_cursor": "the-same", "has_more": True}, Incomplete.REPEATED_CURSOR),
        ({"next_cursor": None, "has_more": True}, Incomplete.HAS_MORE),
    ],
)
async def test_page_that_does_not_lead_on_is_named(
    source: CayuSource, update: dict[str, Any], problem: Incomplete
) -> None:
    async def odd(real: Any, query: PendingActionQuery) -> Any:
        return (await real(query.model_copy(update={"cursor": None}))).model_copy(update=update)

    await change_query(source, odd)

    page = await source.page("the-same", limit=200, known=KnownIds())

    assert problem in page.problems


async def test_action_without_identity_and_delegation_is_counted(source: CayuSource) -> None:
    async def nameless(real: Any, query: PendingActionQuery) -> Any:
        result = await real(query)
        for action in result.actions:
            if action.session.id == "ask":
                action.input_id = None
            if action.session.id == "approve":
                action.session.id = "x" * 3000
        return result

    await change_query(source, nameless)

    [page] = await every_page(source)

    assert page.unprojectable_count == 2
    assert Incomplete.UNPROJECTABLE_ACTION in page.problems
    assert "ask" not in {item.reference.session_id for item in page.active}


async def test_session_touched_between_pages_is_found_by_the_next_scan(cayu_store: CayuStore) -> None:
    source = cayu_source(cayu_store.url)
    first = await source.page(None, limit=3, known=KnownIds())
    async with cayu_store.runtime() as (store, _app):
        await store.update_labels("ask", {"requester": "alice@example.com", "team": "red"})

    rest = await source.page(first.next_cursor, limit=200, known=KnownIds())
    again = await shown(source)
    await source.close()

    seen = {item.reference.session_id for page in (first, rest) for item in page.active}
    assert "ask" not in seen, "it jumped to the top, before the cursor"
    assert "ask" in again


async def test_oldest_change_of_a_page_includes_what_is_not_enrolled(source: CayuSource, cayu_store: CayuStore) -> None:
    [page] = await every_page(source)

    assert page.oldest_updated_at == min(action.session.updated_at for action in await cayu_store.actions())


@pytest.mark.parametrize(
    ("state", "reason"),
    [("resolved", "a_reason_of_tomorrow"), ("half_resolved", "durable_closure"), ("", "")],
)
def test_word_of_a_newer_runtime_proves_nothing(state: str, reason: str) -> None:
    assert observed(state, reason) == (AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE)


def test_every_word_of_this_runtime_is_known() -> None:
    from typing import get_args

    from cayu.runtime import human_attention

    for state in get_args(human_attention.AttentionState):
        for reason in get_args(human_attention.AttentionReason):
            assert observed(state, reason) == (AttentionState(state), Evidence(reason))
