"""Decides what becomes of a delivery after a try, or after a question about one: a pure function of the outcome."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from reconciler.reasons import AttemptOutcome, DecisionReason, DeliveryStatus
from reconciler.references import Observation
from worker.channels.outcomes import FailureReason, Outcome, Permanent, Sent, Temporary, Unknown
from worker.channels.protocol import UnknownPolicy
from worker.delivery.limits import Limits
from worker.delivery.rows import Claimed

# After RESEND_ONCE's second unknown outcome nothing more is sent.
_UNKNOWN_AT_MOST = 2


@dataclass(frozen=True, slots=True)
class Result:
    """How one try ended; for a look-up, what the provider said (None: it is not there).

    `row` is as it was before the try but for its count of attempts.
    """

    row: Claimed
    outcome: Outcome | None
    started_at: datetime
    duration: timedelta
    observation: Observation | None = None
    is_look_up: bool = False


@dataclass(frozen=True, slots=True)
class Past:
    """What earlier tries since the last redrive came to."""

    unknown: int = 0
    unexpected: int = 0


@dataclass(frozen=True, slots=True)
class Transition:
    """The next status of a delivery and why; `begun_at` stays while the provider may have it without our knowing."""

    status: DeliveryStatus
    reason: DecisionReason | FailureReason
    attempt: AttemptOutcome
    next_attempt_at: datetime
    begun_at: datetime | None = None
    provider_ref: str | None = None
    held_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """Makes transitions for one destination at one moment; `luck` in [0, 1) is the jitter's."""

    policy: UnknownPolicy
    limits: Limits
    now: datetime
    luck: float

    def judge(self, result: Result, past: Past) -> Transition:
        """Return what becomes of the delivery."""
        if result.is_look_up:
            return self._looked_up(result)
        outcome = result.outcome
        match outcome:
            case Sent(provider_ref):
                return self._sent(AttemptOutcome.SENT, provider_ref)
            case Temporary(reason, retry_after):
                return self._temporary(result.row, reason, retry_after, past)
            case Permanent(reason):
                return self._dead(reason, AttemptOutcome.PERMANENT, result.row.begun_at)
            case Unknown(reason):
                return self._unknown(result, reason, past)
            case None:
                raise AssertionError("only a look-up ends without an outcome")
        assert_never(outcome)

    def _sent(self, attempt: AttemptOutcome, provider_ref: str | None) -> Transition:
        return Transition(DeliveryStatus.SENT, DecisionReason.DELIVERED, attempt, self.now, provider_ref=provider_ref)

    def _temporary(self, row: Claimed, reason: FailureReason, retry_after: timedelta | None, past: Past) -> Transition:
        begun_at = row.begun_at  # a definite failure says nothing of an earlier try that may have arrived
        if self._is_hopeless(reason, past):
            return self._dead(reason, AttemptOutcome.TEMPORARY, begun_at)
        delay = self._back_off(row)
        held_until = None
        if retry_after is not None:
            delay = max(delay, retry_after)
            held_until = self.now + min(retry_after, self.limits.backoff.max_age)
        return self._again(row, reason, AttemptOutcome.TEMPORARY, self.now + delay, begun_at, held_until)

    def _unknown(self, result: Result, reason: FailureReason, past: Past) -> Transition:
        row, begun_at = result.row, result.started_at
        if self._is_hopeless(reason, past):
            return self._dead(reason, AttemptOutcome.UNKNOWN, begun_at)
        match self.policy:
            case UnknownPolicy.LOOK_UP:
                at = self.now + self.limits.backoff.base
                return Transition(DeliveryStatus.UNKNOWN, reason, AttemptOutcome.UNKNOWN, at, begun_at)
            case UnknownPolicy.RESEND:
                at = self.now + self._back_off(row)
                return self._again(row, reason, AttemptOutcome.UNKNOWN, at, begun_at)
            case UnknownPolicy.RESEND_ONCE if past.unknown + 1 < _UNKNOWN_AT_MOST:
                at = self.now + self._back_off(row)
                return self._again(row, reason, AttemptOutcome.UNKNOWN, at, begun_at)
            case UnknownPolicy.RESEND_ONCE | UnknownPolicy.GIVE_UP:
                return self._dead(reason, AttemptOutcome.UNKNOWN, begun_at)
        assert_never(self.policy)

    def _looked_up(self, result: Result) -> Transition:
        row, outcome = result.row, result.outcome
        assert row.begun_at is not None, "only a begun try is asked about"
        match outcome:
            case Sent(provider_ref):
                return self._sent(AttemptOutcome.FOUND, provider_ref)
            case None:
                at = max(self.now, row.begun_at + self._back_off(row))
                return self._again(row, DecisionReason.NOT_THERE, AttemptOutcome.ABSENT, at, None)
            case Temporary(reason, retry_after):
                pause = min(max((self.now - row.begun_at) / 2, self.limits.backoff.base), self.limits.backoff.cap)
                return self._unanswered(row.begun_at, reason, max(pause, retry_after or pause))
            case Permanent(reason) | Unknown(reason):
                pause = max((self.now - row.begun_at) / 2, self.limits.backoff.base)
                return self._unanswered(row.begun_at, reason, pause)
        assert_never(outcome)

    def _unanswered(self, begun_at: datetime, reason: FailureReason, pause: timedelta) -> Transition:
        at = self.now + pause
        if at > begun_at + self.limits.look_up_for:
            return self._dead(reason, AttemptOutcome.UNANSWERED, begun_at)
        return Transition(DeliveryStatus.UNKNOWN, reason, AttemptOutcome.UNANSWERED, at, begun_at)

    def _again(
        self,
        row: Claimed,
        reason: DecisionReason | FailureReason,
        attempt: AttemptOutcome,
        at: datetime,
        begun_at: datetime | None,
        held_until: datetime | None = None,
    ) -> Transition:
        is_too_old = row.give_up_at is not None and at > row.give_up_at
        if is_too_old or row.tries >= self.limits.backoff.max_attempts:
            return self._dead(reason, attempt, begun_at, held_until)
        return Transition(DeliveryStatus.PENDING, reason, attempt, at, begun_at, held_until=held_until)

    def _dead(
        self,
        reason: DecisionReason | FailureReason,
        attempt: AttemptOutcome,
        begun_at: datetime | None,
        held_until: datetime | None = None,
    ) -> Transition:
        return Transition(DeliveryStatus.DEAD, reason, attempt, self.now, begun_at, held_until=held_until)

    def _is_hopeless(self, reason: FailureReason, past: Past) -> bool:
        """A bug does not go away by itself."""
        return reason is FailureReason.UNEXPECTED and past.unexpected + 1 >= self.limits.max_unexpected

    def _back_off(self, row: Claimed) -> timedelta:
        return self.limits.backoff.delay(max(1, row.tries), self.luck)
