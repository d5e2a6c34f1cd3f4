"""A database that fails says nothing about a token: try again, and never a replay."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import DataError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.pause_store.answers import AnswerStore
from reconciler.pause_store.errors import AlreadyAnsweredError, PauseStoreUnavailableError
from reconciler.pause_store.failures import is_passing, try_again
from reconciler.pause_store.tables import ANSWERS, CONSUMPTION
from tests.contract.pause_tokens.store_kit import (
    PLACE,
    answer,
    claim,
    failing,
    issue,
    ledger_on,
    lost_commits,
    rows,
)
from tests.support.databases import engine_for

LOST = OperationalError("INSERT", None, ConnectionError("server closed the connection"))


@pytest.fixture
async def impatient(sqlite_pause_url: str) -> AsyncIterator[AsyncEngine]:
    """An SQLite engine that does not wait for another writer."""
    engine = engine_for(sqlite_pause_url)

    def no_waiting(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA busy_timeout=0")

    event.listen(engine.sync_engine, "connect", no_waiting)
    yield engine
    await engine.dispose()


@pytest.mark.statement("S70", "S90")
async def test_a_locked_database_is_no_replay(impatient: AsyncEngine, sqlite_pause_url: str) -> None:
    await issue(impatient)
    await issue(impatient, "b" * 32, place=PLACE)
    writer = sqlite3.connect(sqlite_pause_url.removeprefix("sqlite:///"), isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")

    with pytest.raises(PauseStoreUnavailableError):
        await claim(impatient)
    with pytest.raises(PauseStoreUnavailableError):
        await AnswerStore(impatient).accept(answer("b" * 32))
    with pytest.raises(PauseStoreUnavailableError):
        await issue(impatient, "c" * 32)
    writer.execute("ROLLBACK")
    writer.close()
    assert await claim(impatient) is True
    assert (await AnswerStore(impatient).accept(answer("b" * 32))).is_repeated is False


@pytest.mark.statement("S70", "S90")
@pytest.mark.parametrize("part", ["INSERT INTO answer_token_consumption", "INSERT INTO attention_answer"])
async def test_a_connection_lost_before_the_commit_leaves_everything_as_it_was(engine: AsyncEngine, part: str) -> None:
    await issue(engine, place=PLACE)
    store = AnswerStore(engine)

    with failing(engine, part, LOST), pytest.raises(PauseStoreUnavailableError):
        await store.accept(answer())
    assert (await rows(engine, ANSWERS), await rows(engine, CONSUMPTION)) == (0, 0)
    assert (await store.accept(answer())).is_repeated is False


@pytest.mark.statement("S69")
@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_claim_whose_commit_was_lost_is_settled_by_asking_again(
    engine: AsyncEngine, is_committed: bool
) -> None:
    await issue(engine)

    with lost_commits(engine, is_committed=is_committed) as lost:
        assert await claim(engine) is True
    assert lost == ["commit"]
    assert await claim(engine) is False


@pytest.mark.statement("S70", "S90")
async def test_a_claim_that_can_never_commit_is_unknown_and_the_token_stays_good(engine: AsyncEngine) -> None:
    await issue(engine)

    with lost_commits(engine, is_committed=False, times=2), pytest.raises(PauseStoreUnavailableError):
        await claim(engine)
    assert await claim(engine) is True


@pytest.mark.statement("S69")
async def test_a_claim_whose_every_commit_was_lost_is_still_known_by_its_mark(engine: AsyncEngine) -> None:
    await issue(engine)

    with lost_commits(engine, is_committed=True, times=2):
        assert await claim(engine) is True


@pytest.mark.statement("T5")
@pytest.mark.parametrize("is_committed", [True, False])
async def test_an_answer_whose_commit_was_lost_is_settled_by_reading_it(
    engine: AsyncEngine, is_committed: bool
) -> None:
    await issue(engine, place=PLACE)
    store = AnswerStore(engine)

    with lost_commits(engine, is_committed=is_committed):
        acceptance = await store.accept(answer())

    assert acceptance.stored.is_of(answer())
    assert (await rows(engine, ANSWERS), await rows(engine, CONSUMPTION)) == (1, 1)


@pytest.mark.statement("T6")
async def test_another_answer_that_came_in_between_is_not_taken_for_ours(engine: AsyncEngine) -> None:
    await issue(engine, place=PLACE)
    await issue(engine, "b" * 32, place=PLACE)
    store = AnswerStore(engine)
    find, theirs = store.find, answer("b" * 32, principal="bob")

    async def find_late(namespace: str, attention_id: str) -> object:
        if not await rows(engine, ANSWERS):
            await AnswerStore(engine).accept(theirs)
        return await find(namespace, attention_id)

    store.find = find_late  # type: ignore[assignment]  # the moment between the lost commit and its settling
    with lost_commits(engine, is_committed=False), pytest.raises(AlreadyAnsweredError):
        await store.accept(answer())


@pytest.mark.statement("S69", "S70")
async def test_under_serializable_isolation_a_loser_is_told_no_or_try_again(postgres_pause_url: str) -> None:
    engine = engine_for(postgres_pause_url)
    await issue(engine)
    strict = engine.execution_options(isolation_level="SERIALIZABLE")

    outcomes = await asyncio.gather(*(claim(strict) for _ in range(16)), return_exceptions=True)

    assert outcomes.count(True) == 1
    assert all(isinstance(other, bool | PauseStoreUnavailableError) for other in outcomes)
    await engine.dispose()


async def test_a_database_that_is_not_there_is_try_again(tmp_path: Path) -> None:
    engine = engine_for("postgresql://nobody@127.0.0.1:1/nothing")

    for asking in (claim(engine), ledger_on(engine).outstanding(), ledger_on(engine).drain_proof()):
        with pytest.raises(PauseStoreUnavailableError):
            await asking
    await engine.dispose()


@pytest.mark.parametrize("is_postgres", [True, False])
async def test_no_table_is_made_by_asking(postgres_url: str, tmp_path: Path, is_postgres: bool) -> None:
    engine = engine_for(postgres_url if is_postgres else f"sqlite:///{tmp_path / 'empty.db'}")

    for _ in range(2):
        with pytest.raises(Exception, match=r"no such table|does not exist|cannot answer"):
            await issue(engine)
    await engine.dispose()


async def test_what_trying_again_would_only_meet_again_is_passed_on() -> None:
    fault = DataError("INSERT", None, ValueError("too long"))

    assert is_passing(LOST) is True
    assert is_passing(fault) is False
    with pytest.raises(DataError):
        async with try_again():
            raise fault
