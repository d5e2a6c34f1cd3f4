"""Takes back what was not said: all of it where the request is over, with a last word to whoever was told."""

from collections.abc import Sequence
from datetime import datetime

from reconciler.plan.case import Case
from reconciler.plan.rows import SETTLE, Decision, NewDelivery, Place, Plan, Told, message_key
from reconciler.reasons import DecisionReason, DeliveryStatus, Verdict


def settle(case: Case, told: Sequence[Told], now: datetime) -> Plan:
    """Return what the end of a request asks for: it is told at once, also in quiet hours, as it edits what is there."""
    withdrawn = withdraw(case, told, DecisionReason.SETTLED_BEFORE_SENDING)
    cancelled = {delivery_id for delivery_id, _ in withdrawn.cancel}
    # A leased or unknown opening may have reached the person: its settle waits until that is known.
    reached: dict[Place, Told] = {}
    for row in told:
        if row.may_have_arrived or (row.status is not DeliveryStatus.CANCELLED and row.delivery_id not in cancelled):
            reached.setdefault(row.place, row)
    add = tuple(_last_word(case, row, now) for row in reached.values())
    planned = tuple(
        Decision(
            case.notification_id, Verdict.PLANNED, row.reason, row.route, row.destination, row.recipient, row.purpose
        )
        for row in add
    )
    return Plan(add=add, cancel=withdrawn.cancel, decisions=withdrawn.decisions + planned)


def withdraw(case: Case, told: Sequence[Told], reason: DecisionReason) -> Plan:
    """Return a plan that cancels everything about the request that waits to be said."""
    waiting = [row for row in told if row.status is DeliveryStatus.PENDING and not row.is_settle]
    return Plan(
        cancel=tuple((row.delivery_id, reason) for row in waiting),
        decisions=tuple(cancelled(case, row, reason) for row in waiting),
    )


def cancelled(case: Case, row: Told, reason: DecisionReason) -> Decision:
    """Return the entry for the story."""
    return Decision(
        case.notification_id, Verdict.CANCELLED, reason, row.route, row.destination, row.recipient, row.purpose
    )


def _last_word(case: Case, row: Told, now: datetime) -> NewDelivery:
    key = message_key(case.subject.namespace, case.attention_id, row.destination, row.recipient, SETTLE)
    return NewDelivery(
        case.notification_id,
        row.destination,
        row.channel,
        row.recipient,
        SETTLE,
        key,
        row.route,
        DecisionReason.SETTLED,
        due_at=now,
    )
