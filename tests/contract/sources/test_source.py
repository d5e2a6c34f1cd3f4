"""One suite, every source: what the reconciler relies on."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from config.clock import FrozenClock
from reconciler.references import Reference
from reconciler.sources.handoff import Options, build
from reconciler.sources.protocol import Observes, RefreshesSessions, Scans
from reconciler.sources.services import SourceServices
from reconciler.sources.testing import conformance
from reconciler.sources.testing.conformance import CHANGING, LOOKING, Check, Subject
from reconciler.states import AttentionState, Evidence
from tests.support.cayu_server import cayu_server
from tests.support.cayu_stores import CayuStore
from tests.support.sources import SEEN_AT, KnownIds, cayu_source, every_page, http_source, shown


@dataclass
class Case:
    """A source over the paused store, and what can be done behind its back where the test has a store of its own."""

    source: Any
    store: CayuStore
    break_down: Callable[[], Awaitable[None]]

    @property
    def subject(self) -> Subject:
        """Return it as the suite takes it."""
        return Subject(self.source, self.settle_question, self.break_down)

    async def settle_question(self) -> Reference:
        """Answer the question of the session `ask`; return its reference."""
        question = (await shown(self.source))["ask"]
        await self.store.settle("ask", "answer")
        return question.reference


# The requests of tests/support/cayu_stores.py that are not withheld: four of their own, two asked by children.
REQUESTS = 6
UNCHANGED = {"sqlite": "cayu_store", "postgresql": "shared_postgres_cayu_store", "http": "cayu_store"}
OWN = {"sqlite": "cayu_store", "postgresql": "postgres_cayu_store", "http": "cayu_store"}

Stored = tuple[str, CayuStore]


# Stores are fetched by fixtures that are not coroutines: the pauses are made in a loop of their own.
@pytest.fixture(params=UNCHANGED)
def unchanged(request: pytest.FixtureRequest) -> Stored:
    return request.param, request.getfixturevalue(UNCHANGED[request.param])


@pytest.fixture(params=OWN)
def own(request: pytest.FixtureRequest) -> Stored:
    return request.param, request.getfixturevalue(OWN[request.param])


@asynccontextmanager
async def opened(stored: Stored) -> AsyncIterator[Case]:
    kind, store = stored
    if kind != "http":
        source = cayu_source(store.url)
        yield Case(source, store, store.break_down)
        await source.close()
        return
    async with ClientSession() as http, AsyncExitStack() as server:
        url = await server.enter_async_context(cayu_server(store))
        yield Case(http_source(url, http), store, server.aclose)


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


@pytest.mark.parametrize("check", LOOKING, ids=lambda check: check.__name__)
async def test_source_keeps_the_promise(check: Check, case: Case) -> None:
    await check(case.subject)


async def test_absence_is_silence_and_never_a_terminal_state(own_case: Case) -> None:
    await conformance.end_is_said_and_absence_is_not(own_case.subject)


async def test_outage_is_unavailable_and_nothing_else(own_case: Case) -> None:
    await conformance.outage_is_unavailable(own_case.subject)


async def test_reference_with_another_identity_is_unavailable(case: Case) -> None:
    await conformance.stranger_is_unavailable(case.subject)


def test_every_check_that_changes_the_store_has_its_test_above() -> None:
    assert set(CHANGING) == {conformance.end_is_said_and_absence_is_not, conformance.outage_is_unavailable}


async def test_source_has_all_three_abilities(case: Case) -> None:
    assert isinstance(case.source, Scans)
    assert isinstance(case.source, RefreshesSessions)
    assert isinstance(case.source, Observes)


async def test_scan_shows_who_asks_and_since_when(case: Case) -> None:
    found = await shown(case.source)

    assert len(found) == REQUESTS
    for item in found.values():
        assert item.observed_at == SEEN_AT
        assert item.request is not None
        assert item.request.agent_name == "worker"
        assert item.request.paused_at is not None


async def test_small_pages_are_several(case: Case) -> None:
    assert len(await every_page(case.source, limit=3)) > 1


async def test_answered_question_is_resolved_by_its_own_record(own_case: Case) -> None:
    ended = await own_case.settle_question()

    view = await own_case.source.session("ask", known=KnownIds())
    after = await own_case.source.observe(ended)

    assert (view.active, view.problems) == ((), frozenset())
    assert (after.state, after.reason) == (AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE)


@pytest.mark.parametrize("check", LOOKING, ids=lambda check: check.__name__)
async def test_source_that_only_pushes_keeps_what_can_be_asked_of_it(check: Check) -> None:
    services = SourceServices(FrozenClock(SEEN_AT), Path("/"))

    await check(Subject(build("test", Options(), services)))
