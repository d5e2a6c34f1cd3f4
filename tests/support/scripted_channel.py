"""A channel whose outcomes a test scripts, and which remembers what it was given."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from worker.channels.destination import Destination
from worker.channels.outcomes import Outcome, Sent
from worker.channels.protocol import Message, SendContext, UnknownPolicy

Answer = Outcome | Exception


@dataclass
class ScriptedChannel:
    """Answers with `script` one by one, then with Sent; `found` answers look-ups, then None.

    `accepted` counts by message key what the receiver has: every Sent, and what a test adds for an unknown.
    """

    name: str
    script: list[Answer] = field(default_factory=list)
    found: list[Outcome | Exception | None] = field(default_factory=list)
    on_unknown: UnknownPolicy = UnknownPolicy.RESEND
    recipients: tuple[str, ...] = ()
    type: str = "scripted"

    def __post_init__(self) -> None:
        self.recipients = self.recipients or (self.name,)
        self.tries: list[tuple[Message, SendContext]] = []
        self.sent: list[tuple[Message, SendContext]] = []
        self.accepted: Counter[str] = Counter()
        self.lookups = 0
        self.look_ups: list[SendContext] = []
        self.before_answer: Callable[[Message], Awaitable[None]] | None = None

    async def send(self, message: Message, context: SendContext) -> Outcome:
        """Answer as scripted."""
        self.tries.append((message, context))
        await asyncio.sleep(0)
        if self.before_answer is not None:
            await self.before_answer(message)
        answer = self.script.pop(0) if self.script else Sent(f"ref-{message.key}")
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Sent):
            self.sent.append((message, context))
            self.accepted[message.key] += 1
        return answer

    async def find(self, message: Message, context: SendContext) -> Outcome | None:
        """Answer a look-up as scripted."""
        self.lookups += 1
        self.look_ups.append(context)
        answer = self.found.pop(0) if self.found else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def check(self) -> str:
        """Find nothing wrong."""
        return "scripted"

    async def close(self) -> None:
        """Do nothing."""

    def purposes(self) -> list[str]:
        """Return the purposes of what was sent, in order."""
        return [message.purpose for message, _ in self.sent]


def destination_of(channel: ScriptedChannel, *, fallback: Iterable[str] = (), **options: object) -> Destination:
    """Return a destination named like the channel."""
    return Destination(channel.name, channel.type, channel, tuple(fallback), **options)  # type: ignore[arg-type]
