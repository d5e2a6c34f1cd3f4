"""The console channel: one line a message on standard output; for trying things out, no account needed."""

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
        self._wording = Wording(text.as_is, templates.sentence(options.template, text.as_is))

    async def send(self, message: Message, context: SendContext) -> Outcome:
        """Write the message; temporary where the output is closed or full."""
        try:
            self._output.write(self._render(message))
            self._output.flush()
        except (OSError, ValueError):
            return Temporary(FailureReason.UNREACHABLE)
        return Sent(None)

    async def find(self, message: Message, context: SendContext) -> Outcome | None:
        """Return None: a console cannot be asked."""
        return None

    async def check(self) -> str:
        """Say where messages go."""
        return "writes to standard output"

    async def close(self) -> None:
        """Do nothing: the output is not ours to close."""

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
