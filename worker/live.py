"""What may change while the process runs: destinations, routes, and who gets Handbell's own notices."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.routes import Routing
from worker.channels.destination import Destination


@dataclass(frozen=True, slots=True)
class Telling:
    """Who can be told and who is, replaced as a whole; `operator` names the destinations of our own notices."""

    destinations: Mapping[str, Destination]
    routing: Routing
    operator: Sequence[str]

    async def close(self) -> None:
        """Let go of the channels; safe to call twice."""
        for destination in self.destinations.values():
            await destination.channel.close()


class Live:
    """The present `Telling`; made inside the running loop."""

    def __init__(self, now: Telling) -> None:
        self.now = now
        self._changed = asyncio.Event()

    def replace(self, new: Telling) -> None:
        """Put `new` in its place; whoever waits for `changed` goes on."""
        self.now = new
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self, since: Telling) -> None:
        """Return once something else than `since` is in place."""
        while self.now is since:
            await self._changed.wait()

    async def close(self) -> None:
        """Let go of what is in place."""
        await self.now.close()
