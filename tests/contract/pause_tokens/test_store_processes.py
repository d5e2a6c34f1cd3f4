"""Several processes, and one that dies at the worst moment."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.pause_store.answers import AnswerState, AnswerStore
from reconciler.pause_store.errors import AlreadyAnsweredError
from reconciler.pause_store.tables import ANSWERS, CONSUMPTION
from tests.contract.pause_tokens.store_kit import PLACE, answer, issue, rows


async def child(url: str, task: str) -> Process:
    """Start a process that is ready to do the task as soon as it gets a line."""
    command = (sys.executable, "-m", "tests.contract.pause_tokens.store_child", url, task)
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.statement("S69")
async def test_of_two_processes_one_redeems(engine: AsyncEngine, pause_url: str) -> None:
    await issue(engine)
    processes = await asyncio.gather(child(pause_url, "claim"), child(pause_url, "claim"))

    said = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))

    assert sorted(out for out, _ in said) == [b"False\n", b"True\n"]


@pytest.mark.statement("T5")
async def test_a_process_killed_right_after_the_claim_leaves_the_answer_to_go_on_from(
    engine: AsyncEngine, pause_url: str
) -> None:
    await issue(engine, place=PLACE)
    await issue(engine, "b" * 32, place=PLACE)
    process = await child(pause_url, "die-after-commit")
    await process.communicate(b"go\n")

    assert process.returncode == -signal.SIGKILL
    store = AnswerStore(engine)
    stored = await store.find("prod", "a-1")
    assert stored is not None
    assert (stored.state, stored.answer_body) == (AnswerState.ACCEPTED, b"sealed")
    assert (await store.accept(answer())).is_repeated is True
    with pytest.raises(AlreadyAnsweredError):
        await store.accept(answer("b" * 32, principal="bob"))


@pytest.mark.statement("T5", "S90")
async def test_a_process_killed_before_its_commit_burns_nothing(engine: AsyncEngine, pause_url: str) -> None:
    await issue(engine, place=PLACE)
    process = await child(pause_url, "die-before-commit")
    await process.communicate(b"go\n")

    assert process.returncode == -signal.SIGKILL
    assert (await rows(engine, ANSWERS), await rows(engine, CONSUMPTION)) == (0, 0)
    assert (await AnswerStore(engine).accept(answer())).is_repeated is False
