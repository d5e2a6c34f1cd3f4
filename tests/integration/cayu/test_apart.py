"""Pages read by a child process are those of the source itself; its death is an outage that passes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from config.clock import FrozenClock
from reconciler.errors import SourceUnavailable, WrongStore
from reconciler.sources.apart import ApartSource, Recipe
from reconciler.sources.cayu import Options
from reconciler.sources.protocol import Incomplete
from tests.support.cayu_stores import CayuStore
from tests.support.sources import SEEN_AT, KnownIds, cayu_source, every_page


def apart_source(url: str, namespace: str = "test") -> ApartSource:
    recipe = Recipe("reconciler.sources.cayu", namespace, Options.model_validate({"store": url}), Path("/"))
    return ApartSource(cayu_source(url), recipe, FrozenClock(SEEN_AT))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_apart(paused_file: Path) -> AsyncIterator[ApartSource]:
    """Give one source with one child to the tests that leave it as it is: a child takes seconds to import cayu."""
    source = apart_source(str(paused_file))
    yield source
    await source.close()


@pytest.fixture
async def apart(cayu_store: CayuStore) -> AsyncIterator[ApartSource]:
    source = apart_source(cayu_store.url, "own")
    yield source
    await source.close()


async def test_killed_child_is_an_outage_of_one_page(apart: ApartSource) -> None:
    before = await apart.page(None, limit=200, known=KnownIds())

    class KillsTheChild(KnownIds):
        async def enrolled(self, attention_ids: object) -> frozenset[str]:
            child = apart._child
            assert child is not None
            child.process.kill()
            child.process.wait()
            return frozenset()

    with pytest.raises(SourceUnavailable) as died:
        await apart.page(None, limit=200, known=KillsTheChild())
    after = await apart.page(None, limit=200, known=KnownIds())

    assert died.value.reason == "child_ended"
    assert after == before


async def test_failing_database_leaves_nothing_of_the_page_to_the_next(apart: ApartSource) -> None:
    class Fails(KnownIds):
        async def enrolled(self, attention_ids: object) -> frozenset[str]:
            raise LookupError("the database is gone")

    with pytest.raises(LookupError):
        await apart.page(None, limit=1, known=Fails())

    assert len((await apart.page(None, limit=200, known=KnownIds())).active) > 1


async def test_cancelled_page_leaves_nothing_of_it_to_the_next(apart: ApartSource) -> None:
    reached = asyncio.Event()

    class NeverAnswers(KnownIds):
        async def enrolled(self, attention_ids: object) -> frozenset[str]:
            reached.set()
            return await asyncio.Future()

    task = asyncio.create_task(apart.page(None, limit=1, known=NeverAnswers()))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert len((await apart.page(None, limit=200, known=KnownIds())).active) > 1


@pytest.mark.asyncio(loop_scope="module")
async def test_child_reads_what_the_source_reads_and_asks_the_same(
    shared_apart: ApartSource, paused_file: Path
) -> None:
    plain = cayu_source(str(paused_file))
    asked_apart, asked_here = KnownIds(), KnownIds()

    here = await every_page(plain, limit=4, known=asked_here)
    there = await every_page(shared_apart, limit=4, known=asked_apart)
    await plain.close()

    assert len(there) > 1
    assert there == here
    assert asked_apart.asked == asked_here.asked


@pytest.mark.asyncio(loop_scope="module")
async def test_errors_of_the_source_come_through(shared_apart: ApartSource) -> None:
    with pytest.raises(SourceUnavailable) as refused:
        await shared_apart.page("no such cursor", limit=200, known=KnownIds())

    assert refused.value.reason == Incomplete.CURSOR_REFUSED
    assert (await shared_apart.page(None, limit=200, known=KnownIds())).active


@pytest.mark.asyncio(loop_scope="module")
async def test_child_reads_only_the_store_that_the_parent_knows(shared_apart: ApartSource) -> None:
    await shared_apart.identity()
    shared_apart._expected_identity = "0" * 32

    with pytest.raises(WrongStore):
        await shared_apart.page(None, limit=200, known=KnownIds())
    await shared_apart.identity()
