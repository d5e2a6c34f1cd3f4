"""One suite for every source that can scan, refresh and observe: what the reconciler relies on."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from reconciler.errors import SourceUnavailable
from reconciler.references import Observation
from reconciler.sources.protocol import Incomplete, Observes, RefreshesSessions, Scans
from reconciler.states import TERMINAL_STATES, AttentionState, Evidence
from tests.support.cayu_stores import CayuStore
from tests.support.pause_ledgers import NOW, Ledger
from tests.support.sources import SEEN_AT, KnownIds, cayu_source, every_page, shown


@dataclass
class Case:
    """A source over a paused store, and what can be done behind its back where the test has a store of its own.

    Its session SESSION waits for a person, who can `settle` that; `break_down` takes the store away.
    """

    source: Any
    requests: int
    agent_name: str | None
    settle: Callable[[], Awaitable[None]]
    break_down: Callable[[], Awaitable[None]]


SESSION = "ask"

# The requests of tests/support/cayu_stores.py that are not withheld: four of their own, two asked by children.
CAYU_REQUESTS = 6
PAUSES = (SESSION, "second", "third", "fourth")


def cayu_case(store: CayuStore) -> Case:
    return Case(
        cayu_source(store.url), CAYU_REQUESTS, "worker", lambda: store.settle(SESSION, "answer"), store.break_down
    )


async def pauses_case(ledger: Ledger) -> Case:
    for number, session_id in enumerate(PAUSES):
        await ledger.issue(f"jti-{number}", session_id=session_id, issued_at=NOW - 60 + number % 2)
    return Case(ledger.source(), len(PAUSES), None, lambda: ledger.consume("jti-0"), ledger.break_down)


async def case_of(store: CayuStore | Ledger) -> Case:
    return cayu_case(store) if isinstance(store, CayuStore) else await pauses_case(store)


@pytest.fixture(params=["cayu-sqlite", "cayu-postgresql", "pauses-sqlite", "pauses-postgresql"])
def own_store(request: pytest.FixtureRequest) -> Any:
    """Return a store that the test may change."""
    names = ("cayu_store", "postgres_cayu_store", "sqlite_pause_ledger", "postgres_pause_ledger")
    kinds = ("cayu-sqlite", "cayu-postgresql", "pauses-sqlite", "pauses-postgresql")
    return request.getfixturevalue(names[kinds.index(request.param)])


@pytest.fixture(params=["cayu-sqlite", "cayu-postgresql", "pauses-sqlite", "pauses-postgresql"])
def store(request: pytest.FixtureRequest) -> Any:
    """Return a store that nobody changes."""
    if request.param == "cayu-postgresql":
        return CayuStore(request.getfixturevalue("_shared_database"))
    names = {
        "cayu-sqlite": "cayu_store",
        "pauses-sqlite": "sqlite_pause_ledger",
        "pauses-postgresql": "postgres_pause_ledger",
    }
    return request.getfixturevalue(names[request.param])


@pytest.fixture
async def case(store: Any) -> AsyncIterator[Case]:
    """Give a source over a store that nobody changes."""
    made = await case_of(store)
    yield made
    await made.source.close()


@pytest.fixture
async def own_case(own_store: Any) -> AsyncIterator[Case]:
    """Give a source over a store that the test may change."""
    made = await case_of(own_store)
    yield made
    await made.source.close()


@pytest.fixture
async def session_case(unchanged_cayu_store: CayuStore) -> AsyncIterator[Case]:
    """Give a source that can show a session (a ledger has none), over a store that nobody changes."""
    made = cayu_case(unchanged_cayu_store)
    yield made
    await made.source.close()


@pytest.fixture
async def own_session_case(any_cayu_store: CayuStore) -> AsyncIterator[Case]:
    """Give a source that can show a session, over a store that the test may change."""
    made = cayu_case(any_cayu_store)
    yield made
    await made.source.close()


async def the_question(case: Case) -> Observation:
    return (await shown(case.source))[SESSION]


async def test_source_scans_and_observes(case: Case) -> None:
    assert isinstance(case.source, Scans)
    assert isinstance(case.source, Observes)


async def test_only_a_source_that_knows_sessions_can_be_asked_about_one(session_case: Case, case: Case) -> None:
    assert isinstance(session_case.source, RefreshesSessions)
    assert isinstance(case.source, RefreshesSessions) == (case.agent_name is not None)


async def test_identity_is_stable_and_the_check_passes(case: Case) -> None:
    await case.source.check()

    assert await case.source.identity() == await case.source.identity()


async def test_scan_shows_every_request_as_active_with_who_asks(case: Case) -> None:
    found = await shown(case.source)

    assert len(found) == case.requests
    for item in found.values():
        assert (item.state, item.reason) == (AttentionState.ACTIVE, Evidence.CURRENT_ACTION)
        assert item.observed_at == SEEN_AT
        assert item.request is not None
        assert item.request.agent_name == case.agent_name
        assert item.request.paused_at is not None


@pytest.mark.parametrize("limit", [1, 3])
async def test_small_pages_show_the_same_as_large_ones(case: Case, limit: int) -> None:
    whole = await shown(case.source)

    in_parts = await every_page(case.source, limit=limit)

    assert len(in_parts) > 1
    assert {item.reference for page in in_parts for item in page.active} == {item.reference for item in whole.values()}
    assert not any(page.problems for page in in_parts)


async def test_page_shows_what_is_known_already_too(case: Case) -> None:
    everything = await shown(case.source)
    known = KnownIds(*(item.reference.attention_id for item in everything.values()))

    again = await shown(case.source, known=known)

    assert {item.reference for item in again.values()} == {item.reference for item in everything.values()}


async def test_refused_cursor_says_so(case: Case) -> None:
    with pytest.raises(SourceUnavailable) as refused:
        await case.source.page("no such cursor", limit=200, known=KnownIds())

    assert refused.value.reason == Incomplete.CURSOR_REFUSED


async def test_session_shows_its_request_completely(session_case: Case) -> None:
    question = await the_question(session_case)

    view = await session_case.source.session(SESSION, known=KnownIds())

    assert [item.reference for item in view.active] == [question.reference]
    assert view.problems == frozenset()


@pytest.mark.parametrize("session_id", ["no-such-session", " ", "", "nul\x00", "lone\udc80", "x" * 10_000])
async def test_session_that_is_not_there_is_reported_as_not_found(session_case: Case, session_id: str) -> None:
    view = await session_case.source.session(session_id, known=KnownIds())

    assert view.active == ()
    assert view.problems == {Incomplete.SESSION_NOT_FOUND}


async def test_observe_says_active_and_after_the_answer_what_became_of_it(own_case: Case) -> None:
    question = await the_question(own_case)
    before = await own_case.source.observe(question.reference)
    await own_case.settle()

    after = await own_case.source.observe(question.reference)

    assert (before.state, before.reference) == (AttentionState.ACTIVE, question.reference)
    assert (after.state, after.reason) == (AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE)


async def test_absence_is_silence_and_never_a_terminal_state(own_case: Case) -> None:
    await own_case.settle()

    pages = await every_page(own_case.source)

    assert SESSION not in {item.reference.session_id for page in pages for item in page.active}
    assert not any(item.state in TERMINAL_STATES for page in pages for item in page.active)


async def test_answered_session_is_empty_and_complete(own_session_case: Case) -> None:
    await own_session_case.settle()

    view = await own_session_case.source.session(SESSION, known=KnownIds())

    assert (view.active, view.problems) == ((), frozenset())


async def test_reference_with_another_identity_is_unavailable(case: Case) -> None:
    question = await the_question(case)
    forged = replace(question.reference, attention_id="attention_" + "0" * 64)

    answer = await case.source.observe(forged)

    assert answer.state is AttentionState.UNAVAILABLE


async def test_outage_is_unavailable_and_nothing_else(own_case: Case) -> None:
    question = await the_question(own_case)
    await own_case.break_down()

    answer = await own_case.source.observe(question.reference)
    with pytest.raises(SourceUnavailable):
        await own_case.source.page(None, limit=200, known=KnownIds())

    assert (answer.state, answer.reason) == (AttentionState.UNAVAILABLE, Evidence.STORE_UNAVAILABLE)


async def test_session_is_not_shown_while_the_store_is_away(own_session_case: Case) -> None:
    await own_session_case.break_down()

    with pytest.raises(SourceUnavailable):
        await own_session_case.source.session(SESSION, known=KnownIds())


async def test_close_twice_does_no_harm(case: Case) -> None:
    await case.source.check()

    await case.source.close()
    await case.source.close()
