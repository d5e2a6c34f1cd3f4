"""`handbell demo --runtime pauses`: what is printed, and what must be so at the end."""

import asyncio
import sys
import time
from typing import TYPE_CHECKING

from worker.cli.arguments import print_table

if TYPE_CHECKING:
    from worker.demo.pauses_run import Played

_ANSWER = "Yes"


async def run(*, asks: bool) -> int:
    """Play it; `asks` lets whoever sits here answer. Returns the exit code."""
    from worker.cli.main import DONE, FAILED
    from worker.demo.pauses_run import play

    began = time.monotonic()

    async def answer(question: str) -> str:
        if not asks:
            return _ANSWER
        print(f"\nThe agent asks: {question}")
        said = await asyncio.to_thread(_read_line)
        return said or _ANSWER

    try:
        played = await play(print, answer)
    except TimeoutError:
        print("The demo waited a minute for something that did not happen.")
        return FAILED
    wrong = _print(played)
    print(f"\nThat took {time.monotonic() - began:.1f} s." if not wrong else f"\nNot as it should be: {wrong}.")
    return FAILED if wrong else DONE


async def serve_agent() -> int:
    """Be the agent's process."""
    from worker.demo.pauses_agent import serve

    await serve()
    return 0


def _read_line() -> str:
    print(f"Your answer (Enter for {_ANSWER!r}): ", end="", flush=True)
    return sys.stdin.readline().strip()


def _print(played: "Played") -> str:
    """Print the table; return what is not as it should be, empty where all is."""
    from worker.demo.evidence import messages

    opened, settled = messages(played.shown, "console")
    row = {
        "request": f"{played.shown.attention_id[:20]}…",
        "kind": played.shown.kind,
        "state": played.shown.state,
        "reason": played.shown.reason,
        "console": f"{opened} opening, {settled} settled",
        "second redemption": played.refused,
        "tokens held": f"{played.tokens_captured}, then {played.tokens_kept}",
    }
    print("\nRead back from the database:\n")
    print_table([row], tuple(row))
    problems = {
        "the request is not resolved": played.shown.state != "resolved",
        "the run did not go on": not played.said,
        "the second redemption was not refused": played.refused != "PauseTokenReplayedError",
        "there was not one opening and one settled message": (opened, settled) != (1, 1),
        "the token was not captured, or is kept": (played.tokens_captured, played.tokens_kept) != (1, 0),
    }
    return "; ".join(problem for problem, is_so in problems.items() if is_so)
