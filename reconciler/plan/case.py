"""What the plan knows of one request, and what it counts time by."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.routes import Match, Subject
from reconciler.states import AttentionState


class Trigger(StrEnum):
    """Why a plan is made."""

    SEEN = "seen"  # the request is new, or has another state
    TOLD = "told"  # a message about it was sent, or was given up
    ASKED = "asked"  # a person said something about it, or the routes are others


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time that does not count: nobody could say whether the request was still waiting."""

    begins_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class Silence:
    """What a person wants to hear nothing of until `ends_at`."""

    match: Match
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class Case:
    """One request at the moment of planning; `frozen` are the spans in which it was unavailable, in order."""

    notification_id: int
    attention_id: str
    subject: Subject
    state: AttentionState
    first_seen_at: datetime
    is_dismissed: bool = False
    acknowledged_until: datetime | None = None
    frozen: tuple[Span, ...] = ()

    def later(self, start: datetime, duration: timedelta) -> datetime:
        """Return when `duration` has passed since `start`, not counting what is frozen."""
        return later(start, duration, self.frozen)


def later(start: datetime, duration: timedelta, frozen: Iterable[Span]) -> datetime:
    """Return when `duration` has passed since `start`; the spans, in order, do not count."""
    end = start + duration
    for span in frozen:
        if span.ends_at > start and span.begins_at < end:
            end += span.ends_at - max(span.begins_at, start)
    return end
