"""The console channel: one line a message on standard output; for trying things out, no account needed.

A pipe that nobody reads blocks whoever writes to it. So each line is written by a short-lived thread of its own, a
daemon: neither the other destinations nor the end of the process waits for it.
"""

import asyncio
import io
import os
import threading
from contextlib import suppress

from pydantic import BaseModel, ConfigDict, Field

from worker.channels import templates, text
from worker.channels.option_fields import Template
from worker.channels.outcomes import FailureReason, Outcome, Sent, Temporary
from worker.channels.protocol import Message, SendContext, UnknownPolicy
from worker.channels.services import Services
from worker.channels.wording import Wording

TYPE = "console"


class Options(BaseModel):
    """One line a message on standard output; for trying things out."""

    model_config = ConfigDict(extra="forbid")

    template: Template | None = Field(
        default=None,
        description="A Jinja2 sentence that says a request, over the fields that slack.md lists. "
        "Unset: the runtime's fixed summary.",
    )


class ConsoleChannel:
    """Writes each message as a line (a digest as one line more for each request)."""

    type = TYPE
    on_unknown = UnknownPolicy.GIVE_UP

    def __init__(self, name: str, options: Options, services: Services) -> None:
        self.recipients = (name,)
        self._name = name
        self._output = services.console
        self._turn = asyncio.Lock()
        self._wording = Wording(text.as_is, templates.sentence(options.template, text.as_is))

    async def send(self, message: Message, context: SendContext) -> Outcome:
        """Write the message; temporary where the output is closed or full."""
        async with self._turn:
            is_written = await self._write_apart(self._render(message))
        return Sent(None) if is_written else Temporary(FailureReason.UNREACHABLE)

    async def find(self, message: Message, context: SendContext) -> Outcome | None:
        """Return None: a console cannot be asked."""
        return None

    async def check(self) -> str:
        """Say where messages go."""
        return "writes to standard output"

    async def close(self) -> None:
        """Do nothing: the output is not ours to close."""

    async def _write_apart(self, line: str) -> bool:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()

        def answer(is_written: bool) -> None:
            if not done.done():
                done.set_result(is_written)

        def work() -> None:
            is_written = self._write(line)
            with suppress(RuntimeError):  # the loop is closed: nobody asks any more
                loop.call_soon_threadsafe(answer, is_written)

        threading.Thread(target=work, name=f"console {self._name}", daemon=True).start()
        return await done

    def _write(self, line: str) -> bool:
        try:
            self._output.flush()  # what was printed before
            left = line.encode(self._output.encoding or "utf-8", "backslashreplace")
            number = self._output.fileno()
            while left:
                # Past the buffer, whose lock a blocked thread would keep, and Python aborts where it cannot have it.
                left = left[os.write(number, left) :]
        except io.UnsupportedOperation:  # no file
            self._output.write(line)
        except (OSError, ValueError):
            return False
        return True

    def _render(self, message: Message) -> str:
        parts = [self._wording.headline(message)]
        lines: list[str] = []
        if len(message.items) == 1:
            parts += [f"{label}: {value}" for label, value in self._wording.facts(message)]
            parts += filter(None, [text.web_link(message.item.link)])
        else:
            lines = [self._wording.item_line(item) for item in message.items]
        parts += filter(None, [self._wording.footer(message)])
        head = f"[{self._name}] {' | '.join(parts)}"
        return "\n  - ".join([head, *lines]) + "\n"


def build(name: str, options: Options, services: Services) -> ConsoleChannel:
    """Make the destination `name`."""
    return ConsoleChannel(name, options, services)
