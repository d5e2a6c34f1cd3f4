"""What a webhook receiver's status means: one table.

Standard Webhooks knows success (2xx), 410 (stop sending) and failure; the difference between a failure that may
pass and one that waits for a person is ours. Source (read 2026-11-30):
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#deliverability-and-reliability
"""

from datetime import timedelta

from worker.channels.outcomes import FailureReason, Outcome, Permanent, Temporary

PERMANENT = {
    400: FailureReason.REJECTED,
    401: FailureReason.UNAUTHORIZED,
    403: FailureReason.UNAUTHORIZED,
    404: FailureReason.DESTINATION_GONE,
    410: FailureReason.DESTINATION_GONE,
}

TEMPORARY = {
    408: FailureReason.SERVER_ERROR,
    423: FailureReason.SERVER_ERROR,
    425: FailureReason.SERVER_ERROR,
    429: FailureReason.RATE_LIMITED,
}


def outcome_of_status(status: int, wait: timedelta | None) -> Outcome | None:
    """Return what a final status means, None for success; `wait` is what the receiver asked for."""
    if 200 <= status < 300:
        return None
    if status in PERMANENT:
        return Permanent(PERMANENT[status])
    if status in TEMPORARY:
        return Temporary(TEMPORARY[status], wait)
    if 300 <= status < 400:
        return Permanent(FailureReason.REDIRECTED)
    if 400 <= status < 500:
        return Permanent(FailureReason.REJECTED)
    if 500 <= status < 600:
        return Temporary(FailureReason.SERVER_ERROR, wait)
    return Temporary(FailureReason.BAD_ANSWER, wait)
