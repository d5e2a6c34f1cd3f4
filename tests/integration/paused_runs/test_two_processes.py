"""A run pauses in one process and goes on in another; the demo shows the same with Handbell beside it."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from config.clock import SystemClock
from tests.support.databases import engine_for
from worker.demo.child import PAUSES_AGENT, running_agent
from worker.scripted.pausing import PausingRuntime, Places

ROOT = Path(__file__).parents[3]
AXES = {"session_id": "s-1", "run_id": "run-of-s-1", "call_id": "call-1"}


@pytest.fixture
async def places(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """A deployment of the runtime, with its ledger and its keys."""
    made = Places(f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "keys.json")
    runtime = PausingRuntime(made, SystemClock())
    await runtime.create_tables()
    yield {"ledger": made.ledger, "keyset": str(made.keyset)}
    await runtime.close()


async def outstanding(places: dict[str, str]) -> tuple[str, ...]:
    runtime = PausingRuntime(Places(places["ledger"], Path(places["keyset"])), SystemClock())
    found = await runtime.ledger.outstanding()
    await runtime.close()
    return found


async def test_run_goes_on_once_in_another_process_from_the_turn_it_stood_at(places: dict[str, str]) -> None:
    """Wrong places and a wrong answer are refused first, and the token stays good (S88 to S90)."""
    async with running_agent(PAUSES_AGENT, **places) as pausing:
        paused = await pausing.ask(do="pause", session_id="s-1")
    waiting = await outstanding(places)
    attempts: list[dict[str, Any]] = [
        *({axis: "elsewhere", "answer": "Yes"} for axis in AXES),
        {"answer": ""},
        {"answer": "Yes"},
        {"answer": "Yes"},
    ]
    async with running_agent(PAUSES_AGENT, **places) as resuming:
        outcomes = [await resuming.ask(do="resume", token=paused["token"], **(AXES | each)) for each in attempts]

    assert (paused["resumable"], waiting, await outstanding(places)) == (True, (paused["jti"],), ())
    assert [outcome.get("refused") for outcome in outcomes] == [
        "SessionBindingError",
        "RunBindingError",
        "CallBindingError",
        "ResponseValidationError",
        None,
        "PauseTokenReplayedError",
    ]
    assert outcomes[4] == {"said": "You answered 'Yes'.", "messages": 4}


async def test_pause_without_a_turn_is_not_resumable_and_stays_good(places: dict[str, str]) -> None:
    async with running_agent(PAUSES_AGENT, **places) as pausing:
        paused = await pausing.ask(do="pause", session_id="s-1", has_turn=False)
        outcome = await pausing.ask(do="resume", token=paused["token"], answer="Yes")

    assert (paused["resumable"], outcome["refused"]) == (False, "PauseCheckpointNotFoundError")
    assert await outstanding(places) == (paused["jti"],)


async def test_neither_question_nor_answer_nor_token_stands_in_the_ledger(places: dict[str, str]) -> None:
    async with running_agent(PAUSES_AGENT, **places) as agent:
        paused = await agent.ask(do="pause", session_id="s-1")
        await agent.ask(do="resume", token=paused["token"], answer="a-secret-answer")
    engine = engine_for(places["ledger"])
    await engine.dispose()

    kept = b"".join(file.read_bytes() for file in Path(places["keyset"]).parent.glob("ledger.db*"))
    for text in (paused["question"], "a-secret-answer", paused["token"], paused["token"].rpartition(".")[2]):
        assert text.encode() not in kept


def test_demo_shows_a_run_that_goes_on_elsewhere_and_refuses_a_second_redemption() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "handbell", "demo", "--runtime", "pauses", "--answer"],
        cwd=ROOT,
        input="Not today\n",
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "You answered 'Not today'." in done.stdout
    assert "redeemed already" in done.stdout
    assert "PauseTokenReplayedError" in done.stdout
