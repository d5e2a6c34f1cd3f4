"""The scripted agent of the demo, in a process of its own: paused and answered by lines on its standard input.

It is an ordinary Cayu application whose one tie to Handbell is a `RedisStreamSink`. Each line in is a JSON object
with a `do`; each line out is the JSON answer. It ends at the end of its input.
"""

import asyncio
import json
import logging
import sys
from dataclasses import dataclass, field
from typing import Any

from cayu import CayuApp
from cayu.events import Event
from cayu.observability import EventSink

from sinks.emit.redis_stream import RedisStreamSink
from sinks.emit.wakeup import WAKE_UP_EVENTS
from worker.scripted.runtime import close_store, make_app, open_store, pause
from worker.scripted.settling import current_action, settle

# Generous: a demo on a busy laptop must not fail for a slow disk.
_EMIT_SECONDS = 5.0


class Recording(EventSink):
    """Hands events on and remembers the openings, so that one can be sent again late."""

    def __init__(self, inner: RedisStreamSink) -> None:
        self._inner = inner
        self.accepted = 0
        self.openings: dict[str, Event] = {}

    async def emit(self, event: Event) -> None:
        """Pass the event on; count what Handbell accepted."""
        await self._inner.emit(event)
        if str(event.type) in WAKE_UP_EVENTS:
            self.accepted += 1
            self.openings.setdefault(event.session_id, event)


@dataclass(slots=True)
class Agent:
    """The commands that the demo gives."""

    app: CayuApp
    store: Any
    sink: Recording
    known: dict[str, Any] = field(default_factory=dict)

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out one command; an unknown one is a KeyError, a bug of the demo."""
        handlers = {"pause": self._pause, "settle": self._settle, "late": self._late}
        return await handlers[command["do"]](command)

    async def _pause(self, command: dict[str, Any]) -> dict[str, Any]:
        await pause(self.app, command["kind"], command["session_id"])
        self.known[command["session_id"]] = await current_action(self.store, command["session_id"])
        return {"attention_id": self.known[command["session_id"]].attention_id}

    async def _settle(self, command: dict[str, Any]) -> dict[str, Any]:
        await settle(self.app, self.known[command["session_id"]], command["verb"])
        return {"settled": command["session_id"]}

    async def _late(self, command: dict[str, Any]) -> dict[str, Any]:
        opening = self.sink.openings[command["session_id"]]
        await self.sink.emit(opening)  # the same event once more: the inbox refuses it
        await self.sink.emit(opening.model_copy(update={"id": f"{opening.id}-late"}))  # as if it had been delayed
        return {"accepted": self.sink.accepted}


async def serve() -> None:
    """Read where everything is, then commands, until the input ends."""
    logging.disable(logging.CRITICAL)
    places = json.loads(await asyncio.to_thread(sys.stdin.readline))
    store = open_store(places["store"])
    sink = Recording(RedisStreamSink(places["redis_url"], namespace=places["namespace"], timeout=_EMIT_SECONDS))
    agent = Agent(make_app(store, sinks=[sink]), store, sink)
    _say({"ready": True})
    while line := await asyncio.to_thread(sys.stdin.readline):
        _say(await agent.do(json.loads(line)))
    await close_store(store)


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
