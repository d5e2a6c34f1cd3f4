"""Decides who must be told what, and why: a pure function of the change, the routes and what was told before.

No clock is read and nothing is written here; equal inputs give equal plans. `reconciler/outbox.py` stores a plan
in the transaction of the change that caused it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciler.reasons import DecisionReason, DeliveryStatus, Verdict
from reconciler.routes import Route, Subject, Target, matching
from reconciler.states import AttentionState

OPEN = "open"
SETTLE = "settle"
_MESSAGE_KEY_CHARS = 32


@dataclass(frozen=True, slots=True)
class Change:
    """A notification that is new (`old` is None) or has another state than before."""

    notification_id: int
    attention_id: str
    subject: Subject
    old: AttentionState | None
    new: AttentionState
    is_dismissed: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """A delivery that already stands in the outbox for the notification."""

    delivery_id: int
    destination: str
    channel: str
    recipient: str
    purpose: str
    status: DeliveryStatus
    route: str
    may_have_arrived: bool = False  # a try was handed to the provider and its outcome is not known


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A row for the outbox; one that stands there already is left as it is."""

    notification_id: int
    destination: str
    channel: str
    recipient: str
    purpose: str
    message_key: str
    route: str
    reason: DecisionReason
    due_at: datetime


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
    """What one change asks of the outbox: rows to add, planned rows to cancel, and the decisions behind both."""

    add: tuple[NewDelivery, ...] = ()
    cancel: tuple[tuple[int, DecisionReason], ...] = ()
    decisions: tuple[Decision, ...] = ()


def plan(
    change: Change,
    *,
    routes: Sequence[Route],
    targets: Mapping[str, Target],
    told: Sequence[Told],
    now: datetime,
) -> Plan:
    """Return what `change` asks for.

    A request that is active and of which nobody was told yet is opened at every destination of its routes; one that
    became terminal cancels what was not sent and settles where something was, or may have been. `unavailable`
    changes nothing: it freezes what is planned at the moment of sending.
    """
    if change.new.is_terminal:
        return _settle(change, told, now)
    if change.new is AttentionState.ACTIVE and not change.is_dismissed:
        return _open(change, routes, targets, told, now)
    return Plan()


def message_key(namespace: str, attention_id: str, destination: str, recipient: str, purpose: str) -> str:
    """Return the constant name of one message: 32 hex digits, the same after a restart or a lost database."""
    identity = json.dumps([namespace, attention_id, destination, recipient, purpose], separators=(",", ":"))
    return hashlib.sha256(identity.encode()).hexdigest()[:_MESSAGE_KEY_CHARS]


def _open(
    change: Change, routes: Sequence[Route], targets: Mapping[str, Target], told: Sequence[Told], now: datetime
) -> Plan:
    standing = {(row.destination, row.recipient) for row in told}
    add: list[NewDelivery] = []
    decided = list(matching(routes, change.subject))
    for route in decided:
        for target in (targets[name] for name in route.notify if name in targets):
            for recipient in target.recipients:
                if (target.name, recipient) not in standing:
                    standing.add((target.name, recipient))
                    add.append(_new(change, target.name, target.channel, recipient, OPEN, route.name, now))
    if not decided and not told:
        unrouted = Decision(change.notification_id, Verdict.SUPPRESSED, DecisionReason.NO_ROUTE)
        return Plan(decisions=(unrouted,))
    return Plan(add=tuple(add), decisions=tuple(_planned(row) for row in add))


def _settle(change: Change, told: Sequence[Told], now: datetime) -> Plan:
    cancel = tuple(
        (row.delivery_id, DecisionReason.SETTLED_BEFORE_SENDING)
        for row in told
        if row.status is DeliveryStatus.PENDING and row.purpose != SETTLE
    )
    cancelled = {delivery_id for delivery_id, _ in cancel}
    # A leased or unknown opening may have reached the person: its settle waits until that is known.
    reached: dict[tuple[str, str], Told] = {}
    for row in told:
        if row.may_have_arrived or (row.status is not DeliveryStatus.CANCELLED and row.delivery_id not in cancelled):
            reached.setdefault((row.destination, row.recipient), row)
    add = tuple(
        _new(change, row.destination, row.channel, row.recipient, SETTLE, row.route, now) for row in reached.values()
    )
    dropped = tuple(
        Decision(
            change.notification_id,
            Verdict.CANCELLED,
            DecisionReason.SETTLED_BEFORE_SENDING,
            row.route,
            row.destination,
            row.recipient,
            row.purpose,
        )
        for row in told
        if row.delivery_id in cancelled
    )
    return Plan(add=add, cancel=cancel, decisions=dropped + tuple(_planned(row) for row in add))


def _new(
    change: Change, destination: str, channel: str, recipient: str, purpose: str, route: str, now: datetime
) -> NewDelivery:
    reason = DecisionReason.SETTLED if purpose == SETTLE else DecisionReason.ROUTED
    key = message_key(change.subject.namespace, change.attention_id, destination, recipient, purpose)
    return NewDelivery(change.notification_id, destination, channel, recipient, purpose, key, route, reason, due_at=now)


def _planned(row: NewDelivery) -> Decision:
    return Decision(
        row.notification_id, Verdict.PLANNED, row.reason, row.route, row.destination, row.recipient, row.purpose
    )
