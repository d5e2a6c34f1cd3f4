"""A process of its own for the tests: waits for a line, then claims, or accepts and dies at once.

`python -m tests.contract.pause_tokens.store_child URL claim|die-before-commit|die-after-commit`
"""

import asyncio
import os
import signal
import sys
from typing import Any

from reconciler.pause_store.answers import AnswerStore
from tests.contract.pause_tokens.store_kit import answer, claim
from tests.support.databases import engine_for


def die(*_arguments: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def main(url: str, task: str) -> None:
    engine = engine_for(url)
    print("ready", flush=True)
    sys.stdin.readline()
    if task == "claim":
        print(await claim(engine), flush=True)
    if task == "die-before-commit":
        dialect: Any = engine.sync_engine.dialect
        dialect.do_commit = die  # the last moment before it
    if task.startswith("die"):
        await AnswerStore(engine).accept(answer())
        die()
    await engine.dispose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
