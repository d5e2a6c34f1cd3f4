"""Starts a scripted agent as a child process through the door, and talks to it line by line."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

_STOP_SECONDS = 5.0

# The children's ways in: not shown by `handbell --help`, since only the demo talks this language.
CAYU_AGENT = "demo-agent"
PAUSES_AGENT = "demo-pauses-agent"

# The door of the very tree that this process runs from, whatever else is installed or in the working directory.
_DOOR = Path(__file__).parents[2] / "handbell.py"


class Child:
    """The agent's process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def ask(self, **command: Any) -> dict[str, Any]:
        """Give one command and return its answer; RuntimeError where the agent died."""
        assert self._process.stdin is not None, "the child was started with a pipe"
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        await self._process.stdin.drain()
        assert self._process.stdout is not None, "the child was started with a pipe"
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("the demo's agent ended unexpectedly; its own output says why")
        answer: dict[str, Any] = json.loads(line)
        return answer


@asynccontextmanager
async def running_agent(command: str, **places: str) -> AsyncIterator[Child]:
    """Run the agent for the block; it is ready when the block begins. `places` tell it where everything is."""
    process = await asyncio.create_subprocess_exec(sys.executable, str(_DOOR), command, stdin=PIPE, stdout=PIPE)
    try:
        child = Child(process)
        # On its input and not in its arguments, which everybody on the machine can read.
        await child.ask(**places)
        yield child
    finally:
        if process.returncode is None:
            assert process.stdin is not None, "the child was started with a pipe"
            process.stdin.close()
            try:
                async with asyncio.timeout(_STOP_SECONDS):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
