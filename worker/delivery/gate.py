"""Decides, for each delivery that is held, whether it goes now: a pure function of what is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import assert_never

from reconciler.confirm import Answer
from reconciler.plan import Hold
from reconciler.reasons import DecisionReason, DeliveryStatus
from reconciler.references import Observation
from reconciler.states import AttentionState
from worker.channels.protocol import UnknownPolicy
from worker.delivery.limits import Limits
from worker.delivery.requests import Request
from worker.delivery.rows import Claimed

_UNDECIDED = frozenset({DeliveryStatus.PENDING, DeliveryStatus.LEASED, DeliveryStatus.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Go:
    """Send it now, because of `observation` (None for a settle and a notice)."""

    row: Claimed
    observation: Observation | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """An earlier try may have arrived: ask the provider first."""

    row: Claimed


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now; this counts as no attempt."""

    row: Claimed
    reason: DecisionReason
    until: datetime


@dataclass(frozen=True, slots=True)
class Drop:
    """Never: it is no longer to be said."""

    row: Claimed
    reason: DecisionReason


_NOTHING_HELD: Mapping[int, Hold] = MappingProxyType({})

Ruling = Go | Ask | Wait | Drop


def asks_first(row: Claimed, policy: UnknownPolicy) -> bool:
    """Answer whether the provider must be asked about an earlier try before anything else."""
    return row.begun_at is not None and policy is UnknownPolicy.LOOK_UP


def wants_confirmation(row: Claimed, policy: UnknownPolicy) -> bool:
    """Answer whether the source must be asked before this goes."""
    return (
        row.request is not None
        and not row.is_settle
        and not asks_first(row, policy)
        and not row.request.is_dismissed
        and not row.request.enrolled.state.is_terminal
    )


def rule(
    row: Claimed,
    policy: UnknownPolicy,
    answers: Mapping[int, Answer],
    limits: Limits,
    now: datetime,
    held: Mapping[int, Hold] = _NOTHING_HELD,
) -> Ruling:
    """Return what becomes of the delivery; `answers` are the confirmations by notification id, `held` holds by row."""
    if asks_first(row, policy):
        return Ask(row)
    if row.request is None:
        assert row.notice is not None, "a delivery is about a request or a notice"
        return Drop(row, DecisionReason.SETTLED_BEFORE_SENDING) if row.notice.is_closed else Go(row)
    if row.is_settle:
        return _settle(row, limits, now)
    if row.request.is_dismissed:
        return Drop(row, DecisionReason.DISMISSED)
    if row.request.enrolled.state.is_terminal:
        return Drop(row, DecisionReason.SETTLED_BEFORE_SENDING)
    if row.id in held:
        return Wait(row, held[row.id].reason, held[row.id].until)
    return _by_answer(row, row.request, answers[row.request.enrolled.id], limits, now)


def _by_answer(row: Claimed, request: Request, answer: Answer, limits: Limits, now: datetime) -> Ruling:
    if isinstance(answer, DecisionReason):
        return Wait(row, answer, _later(request.enrolled.observed_at, limits, now))
    match answer.state:
        case AttentionState.ACTIVE:
            return Go(row, answer)
        case AttentionState.UNAVAILABLE:
            was_open = request.enrolled.state is AttentionState.UNAVAILABLE
            silent_since = request.state_changed_at if was_open else now
            return Wait(row, DecisionReason.SOURCE_UNAVAILABLE, _later(silent_since, limits, now))
        case AttentionState.RESOLVED | AttentionState.CANCELLED | AttentionState.SUPERSEDED | AttentionState.EXPIRED:
            return Drop(row, DecisionReason.SETTLED_BEFORE_SENDING)
    assert_never(answer.state)


def _later(silent_since: datetime, limits: Limits, now: datetime) -> datetime:
    """The longer nothing was heard, the longer the next pause: half of it, within bounds."""
    pause = (now - silent_since) / 2
    return now + min(max(pause, limits.postpone_least), limits.postpone_most)


def _settle(row: Claimed, limits: Limits, now: datetime) -> Ruling:
    undecided = [sibling.next_attempt_at for sibling in row.siblings if sibling.status in _UNDECIDED]
    if undecided:
        until = max(now + limits.wait_for_opening, min(undecided))
        return Wait(row, DecisionReason.WAITS_FOR_OPENING, until)
    if not row.sent_before:
        return Drop(row, DecisionReason.NOTHING_WAS_OPENED)
    return Go(row)
