"""What the plan reads of the outbox, and what it asks of it."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.reasons import DecisionReason, DeliveryStatus, Verdict

OPEN = "open"
SETTLE = "settle"
_REMINDER = "reminder"
_ESCALATION = "escalation"
_MESSAGE_KEY_CHARS = 32

Place = tuple[str, str]
"""Who is told: a destination and one of its recipients."""

_UNDECIDED = frozenset({DeliveryStatus.PENDING, DeliveryStatus.LEASED, DeliveryStatus.UNKNOWN})
_NOT_FOR_GOOD = frozenset(
    {DecisionReason.ROUTE_CHANGED.value, DecisionReason.NO_ROUTE.value, DecisionReason.DISMISSED.value}
)


@dataclass(frozen=True, slots=True)
class Told:
    """A delivery that already stands in the outbox for the notification.

    `due_at` is when the plan wanted it said (tries and waits do not move it); `ended_at` when it was sent or given up.
    """

    delivery_id: int
    destination: str
    channel: str
    recipient: str
    purpose: str
    status: DeliveryStatus
    route: str
    reason: str
    due_at: datetime
    ended_at: datetime | None = None
    attempts: int = 0
    may_have_arrived: bool = False  # a try was handed to the provider and its outcome is not known

    @property
    def place(self) -> Place:
        """Return who is told."""
        return self.destination, self.recipient

    @property
    def is_settle(self) -> bool:
        """Answer whether it tells the end."""
        return self.purpose == SETTLE

    @property
    def reminder_number(self) -> int:
        """Return N of `reminder:N`, 0 for another purpose."""
        return number_of(self.purpose, _REMINDER)

    @property
    def escalation_number(self) -> int:
        """Return N of `escalation:N`, 0 for another purpose."""
        return number_of(self.purpose, _ESCALATION)

    @property
    def is_undecided(self) -> bool:
        """Answer whether it may still go."""
        return self.status in _UNDECIDED

    @property
    def is_untouched(self) -> bool:
        """Answer whether it is planned and was never tried: the plan may still move it."""
        return self.status is DeliveryStatus.PENDING and self.attempts == 0 and not self.may_have_arrived

    @property
    def is_revivable(self) -> bool:
        """Answer whether it was cancelled for a reason that may have passed."""
        return self.status is DeliveryStatus.CANCELLED and not self.may_have_arrived and self.reason in _NOT_FOR_GOOD


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A row for the outbox; one that stands there already is left as it is.

    `window` is how long it may wait for others to be told together with; None: it goes alone. `storm_limit` is the
    number of openings a minute above which it waits for others all the same.
    """

    notification_id: int
    destination: str
    channel: str
    recipient: str
    purpose: str
    message_key: str
    route: str
    reason: DecisionReason
    due_at: datetime
    window: timedelta | None = None
    storm_limit: int | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Return which message of its request it is."""
        return self.destination, self.recipient, self.purpose

    @property
    def place(self) -> Place:
        """Return who is told."""
        return self.destination, self.recipient


@dataclass(frozen=True, slots=True)
class Moved:
    """A row of the outbox that was never tried and is to go at another time, or after all; it leaves its digest.

    Where its route has a `window` it goes together with others that are moved to the same time.
    """

    delivery_id: int
    destination: str
    recipient: str
    purpose: str
    due_at: datetime
    route: str
    reason: DecisionReason
    window: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """One entry of the story: what was decided about a message, by which route, why, and until when."""

    notification_id: int
    verdict: Verdict
    reason: DecisionReason
    route: str | None = None
    destination: str | None = None
    recipient: str | None = None
    purpose: str | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of the outbox: rows to add, planned rows to move or to cancel, and the decisions behind it all."""

    add: tuple[NewDelivery, ...] = ()
    move: tuple[Moved, ...] = ()
    cancel: tuple[tuple[int, DecisionReason], ...] = ()
    decisions: tuple[Decision, ...] = ()


def message_key(namespace: str, attention_id: str, destination: str, recipient: str, purpose: str) -> str:
    """Return the constant name of one message: 32 hex digits, the same after a restart or a lost database."""
    identity = json.dumps([namespace, attention_id, destination, recipient, purpose], separators=(",", ":"))
    return hashlib.sha256(identity.encode()).hexdigest()[:_MESSAGE_KEY_CHARS]


def reminder(number: int) -> str:
    """Return the purpose of a reminder."""
    return f"{_REMINDER}:{number}"


def escalation(number: int) -> str:
    """Return the purpose of a step of escalation."""
    return f"{_ESCALATION}:{number}"


def digest_of(purpose: str) -> str:
    """Return what a message of several requests is called: the openings' is `digest:1`, first reminders' `digest:2`."""
    number = purpose.partition(":")[2]
    return f"digest:{int(number or 0) + 1}"


def number_of(purpose: str, word: str) -> int:
    """Return N where `purpose` is `word:N`, else 0."""
    said, _, number = purpose.partition(":")
    return int(number) if said == word and number.isascii() and number.isdecimal() else 0
