"""The scripted agent of the demo whose runs pause by tokens: a process that pauses, or one that resumes.

Each line in is a JSON object with a `do`; each line out is the JSON answer. It ends at the end of its input.
"""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from config.clock import SystemClock
from reconciler.pauses import HumanInteractionError
from reconciler.pauses.contribution import TakenPause
from sinks.emit.capture import PauseCapture
from worker.scripted.pausing import PausingRuntime, Places


class Agent:
    """The commands that the demo gives."""

    def __init__(self, places: dict[str, str]) -> None:
        self.runtime = PausingRuntime(Places(places["ledger"], Path(places["keyset"])), SystemClock())
        url, token = places.get("capture_url"), places.get("capture_token")
        self._capture = PauseCapture(url, token=token) if url and token else None

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out one command; an unknown one is a KeyError, a bug of the demo."""
        handlers = {"pause": self._pause, "resume": self._resume}
        return await handlers[command["do"]](command)

    async def _pause(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run until the model asks; answer with what the run's stream shows of that."""
        session_id, has_turn = command["session_id"], command.get("has_turn", True)

        async def events() -> AsyncIterator[TakenPause]:
            yield await self.runtime.pause(session_id, call_id=command.get("call_id", "call-1"), has_turn=has_turn)

        shown = events() if self._capture is None else self._capture.stream(events())
        taken = await anext(shown)
        return {
            "token": taken.token,
            "question": taken.event.payload.question,
            "jti": taken.event.pause.claims.jti,
            "resumable": taken.event.resumable,
        }

    async def _resume(self, command: dict[str, Any]) -> dict[str, Any]:
        stated = {axis: command[axis] for axis in ("session_id", "run_id", "call_id") if axis in command}
        try:
            ended = await self.runtime.resume(command["token"], command["answer"], **stated)
        except HumanInteractionError as refusal:
            return {"refused": type(refusal).__name__, "message": str(refusal)}
        return {"said": ended.said, "messages": len(ended.messages)}


async def serve() -> None:
    """Read where everything is, then commands, until the input ends."""
    logging.disable(logging.CRITICAL)
    agent = Agent(json.loads(await asyncio.to_thread(sys.stdin.readline)))
    _say({"ready": True})
    while line := await asyncio.to_thread(sys.stdin.readline):
        _say(await agent.do(json.loads(line)))
    await agent.runtime.close()


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
