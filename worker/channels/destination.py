"""A configured destination as delivery sees it."""

from dataclasses import dataclass
from datetime import timedelta

from worker.channels.protocol import Channel


@dataclass(frozen=True, slots=True)
class Destination:
    """One `[channels.NAME]`: its channel, who stands in for it, the least time between two messages."""

    name: str
    type: str
    channel: Channel
    fallback: tuple[str, ...] = ()
    throttle: timedelta | None = None

    @property
    def recipients(self) -> tuple[str, ...]:
        """Return the stable names of those who are told there: one delivery each."""
        return self.channel.recipients
