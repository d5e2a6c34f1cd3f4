"""One suite for every source that can scan, refresh and observe: what the reconciler relies on."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from aiohttp import ClientSession

from reconciler.errors import SourceUnavailable
from reconciler.references import Observation
from reconciler.sources.protocol import Incomplete, Observes, RefreshesSessions, Scans
from reconciler.states import TERMINAL_STATES, AttentionState, Evidence
from tests.support.cayu_server import cayu_server
from tests.support.cayu_stores import CayuStore
from tests.support.pause_ledgers import NOW, Ledger
from tests.support.sources import SEEN_AT, KnownIds, cayu_source, every_page, http_source, shown


@dataclass
class Case:
    """A source over the paused store, and what can be done behind its back where the test has a store of its own.

    It shows `requests`, among them that of the session SESSION, which a person can `settle`.
    """

    source: Any
    settle: Callable[[], Awaitable[None]]
    break_down: Callable[[], Awaitable[None]]
    requests: int
    agent_name: str | None


SESSION = "ask"

# The requests of tests/support/cayu_stores.py that are not withheld: four of their own, two asked by children.
CAYU_REQUESTS = 6
PAUSES = (SESSION, "second", "third", "fourth")

WITH_SESSIONS = {"sqlite": "cayu_store", "postgresql": "shared_postgres_cayu_store", "http": "cayu_store"}
LEDGERS = {"pauses-sqlite": "sqlite_pause_ledger", "pauses-postgresql": "postgres_pause_ledger"}
UNCHANGED = WITH_SESSIONS | LEDGERS
OWN_WITH_SESSIONS = WITH_SESSIONS | {"postgresql": "postgres_cayu_store"}
OWN = OWN_WITH_SESSIONS | LEDGERS

Stored = tuple[str, CayuStore | Ledger]


# Stores are fetched by fixtures that are not coroutines: the pauses are made in a loop of their own.
@pytest.fixture(params=UNCHANGED)
def unchanged(request: pytest.FixtureRequest) -> Stored:
    return request.param, request.getfixturevalue(UNCHANGED[request.param])


@pytest.fixture(params=OWN)
def own(request: pytest.FixtureRequest) -> Stored:
    return request.param, request.getfixturevalue(OWN[request.param])


@pytest.fixture(params=WITH_SESSIONS)
def unchanged_with_sessions(request: pytest.FixtureRequest) -> Stored:
    return request.param, request.getfixturevalue(WITH_SESSIONS[request.param])


@pytest.fixture(params=OWN_WITH_SESSIONS)
def own_with_sessions(request: pytest.FixtureRequest) -> Stored:
    return request.param, request.getfixturevalue(OWN_WITH_SESSIONS[request.param])


@asynccontextmanager
async def opened(stored: Stored) -> AsyncIterator[Case]:
    kind, store = stored
    async with AsyncExitStack() as stack:
        if isinstance(store, Ledger):
            case = await pauses_case(store)
        elif kind == "http":
            http = await stack.enter_async_context(ClientSession())
            server = await stack.enter_async_context(AsyncExitStack())
            url = await server.enter_async_context(cayu_server(store))
            case = cayu_case(http_source(url, http), store, server.aclose)
        else:
            case = cayu_case(cayu_source(store.url), store, store.break_down)
        yield case
        await case.source.close()


def cayu_case(source: Any, store: CayuStore, break_down: Callable[[], Awaitable[None]]) -> Case:
    return Case(source, lambda: store.settle(SESSION, "answer"), break_down, CAYU_REQUESTS, "worker")


async def pauses_case(ledger: Ledger) -> Case:
    for number, session_id in enumerate(PAUSES):
        await ledger.issue(f"jti-{number}", session_id=session_id, issued_at=NOW - 60 + number % 2)
    return Case(ledger.source(), lambda: ledger.consume("jti-0"), ledger.break_down, len(PAUSES), None)


@pytest.fixture
async def case(unchanged: Stored) -> AsyncIterator[Case]:
    """Give a source over a store that nobody changes."""
    async with opened(unchanged) as case:
        yield case


@pytest.fixture
async def own_case(own: Stored) -> AsyncIterator[Case]:
    """Give a source over a store that the test may change."""
    async with opened(own) as case:
        yield case


@pytest.fixture
async def session_case(unchanged_with_sessions: Stored) -> AsyncIterator[Case]:
    """Give a source that knows sessions (a ledger does not), over a store that nobody changes."""
    async with opened(unchanged_with_sessions) as case:
        yield case


@pytest.fixture
async def own_session_case(own_with_sessions: Stored) -> AsyncIterator[Case]:
    """Give a source that knows sessions, over a store that the test may change."""
    async with opened(own_with_sessions) as case:
        yield case


async def the_question(case: Case) -> Observation:
    return (await shown(case.source))[SESSION]


async def test_source_scans_and_observes(case: Case) -> None:
    assert isinstance(case.source, Scans)
    assert isinstance(case.source, Observes)


async def test_source_that_knows_sessions_can_be_asked_about_one(session_case: Case) -> None:
    assert isinstance(session_case.source, RefreshesSessions)


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
    """Of a request that has a notification the identity is enough; its reference was stored when it was enrolled."""
    everything = await shown(case.source)
    known = KnownIds(*(item.reference.attention_id for item in everything.values()))

    again = await shown(case.source, known=known)

    assert {session_id: item.reference.attention_id for session_id, item in again.items()} == {
        session_id: item.reference.attention_id for session_id, item in everything.items()
    }


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
