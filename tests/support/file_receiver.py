"""A receiver that is a file: what was accepted outlives the process that sent it."""

import json
import os
from collections import Counter
from pathlib import Path

from worker.channels.outcomes import Outcome, Sent
from worker.channels.protocol import Message, SendContext, UnknownPolicy


class FileChannel:
    """Appends each message to a file and then answers; can be asked what is there."""

    type = "file"

    def __init__(self, path: Path, on_unknown: UnknownPolicy) -> None:
        self.recipients = ("file",)
        self.on_unknown = on_unknown
        self._path = path

    async def send(self, message: Message, context: SendContext) -> Outcome:
        """Accept the message for good before the answer."""
        line = json.dumps({"key": message.key, "purpose": message.purpose, "state": message.item.state.value})
        with self._path.open("a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        return Sent(message.key)

    async def find(self, message: Message, context: SendContext) -> Outcome | None:
        """Look into the file."""
        return Sent(message.key) if message.key in accepted(self._path) else None

    async def check(self) -> str:
        """Find nothing wrong."""
        return "a file"

    async def close(self) -> None:
        """Do nothing."""


def accepted(path: Path) -> Counter[str]:
    """Return how often each message was accepted, by its key."""
    return Counter(entry["key"] for entry in entries(path))


def entries(path: Path) -> list[dict[str, str]]:
    """Return every accepted message, in order."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
