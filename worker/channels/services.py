"""What every channel is given when it is built: the shared HTTP sessions, the clock, where paths count from."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO

from pydantic import BaseModel

from config.clock import Clock, SystemClock
from worker.channels.http_sessions import HttpSessions
from worker.channels.protocol import Channel


@dataclass(frozen=True, slots=True)
class Services:
    """Shared by all destinations of a process; `close` when the last of them is closed.

    `folder` is the configuration file's own: relative paths in a table count from it. `console` is where the
    console channel writes.
    """

    http: HttpSessions = field(default_factory=HttpSessions)
    clock: Clock = field(default_factory=SystemClock)
    folder: Path = field(default_factory=Path.cwd)
    console: TextIO = field(default_factory=lambda: sys.stdout)

    async def close(self) -> None:
        """Let go of the shared connections; safe to call twice."""
        await self.http.close()


class ChannelType(Protocol):
    """What a channel's module exports, built-in or plug-in (entry-point group `handbell.channels`).

    `Options` must forbid unknown keys. A module may also export `THROTTLE`, the least time between two messages
    where the provider limits them.
    """

    TYPE: str
    Options: type[BaseModel]

    def build(self, name: str, options: Any, services: Services) -> Channel:
        """Make the destination `name`; connects to nothing yet.

        Raises ValueError or config.errors.SettingsError (one line) where the options cannot be used.
        """
        ...


Tables = Mapping[str, Mapping[str, Any]]
