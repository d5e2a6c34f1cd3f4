"""The named points of the flow, and the hook that is called as each is passed.

Tests wait on steps instead of sleeping; the crash suite kills the process at every one of them, so a step
that is named here is tested from that day on. In production the hook does nothing.
"""

import os
import signal
from collections.abc import Callable
from enum import StrEnum


class Step(StrEnum):
    """A point of the flow, named by what has just become true."""

    RECEIVED = "received"  # the consumer holds a batch of the stream, nothing is written
    INBOX_COMMITTED = "inbox_committed"  # the hints are rows; the stream entries are still pending
    REPLIED = "replied"  # the emitters were answered and the entries acknowledged
    SOURCE_ASKED = "source_asked"  # a refresh has the source's answer, nothing is written
    APPLIED = "applied"  # notification, history and outbox rows are committed
    HINTS_PROCESSED = "hints_processed"  # the refreshed hints are marked as processed
    SWEEP_PAGE = "sweep_page"  # a page of a sweep is committed, its cursor too
    SWEEP_FINISHED = "sweep_finished"  # the pass and its outcome are recorded
    CLAIMED = "claimed"  # deliveries are leased, nothing is sent
    CONFIRMED = "confirmed"  # the source was asked again before sending
    SENT = "sent"  # the provider has answered, the attempt is not recorded
    ATTEMPT_RECORDED = "attempt_recorded"  # attempt and delivery status are committed


StepHook = Callable[[Step], None]


def ignore_step(_step: Step) -> None:
    """Do nothing: the hook of production."""


def kill_at(step: Step) -> StepHook:
    """Return a hook that ends this very process with SIGKILL as `step` is passed (for the crash suite)."""

    def hook(passed: Step) -> None:
        if passed is step:
            os.kill(os.getpid(), signal.SIGKILL)

    return hook
