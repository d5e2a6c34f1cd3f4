"""What a channel reports of one try: sent, temporary, permanent or unknown, with a reason from a closed set."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class FailureReason(StrEnum):
    """Why a try did not end as sent; becomes a metric label and is shown by `handbell deliveries`."""

    RATE_LIMITED = "rate_limited"  # the provider asks to wait
    SERVER_ERROR = "server_error"  # the provider's own trouble (5xx, fatal_error, 4yz of SMTP)
    UNREACHABLE = "unreachable"  # no connection, name not resolved, TLS failed before anything was said
    TIMED_OUT = "timed_out"  # no answer within the bound; whether it was accepted is not known
    CONNECTION_LOST = "connection_lost"  # the connection ended before the answer came
    BAD_ANSWER = "bad_answer"  # an answer that the protocol does not have
    UNAUTHORIZED = "unauthorized"  # token revoked, login refused
    DESTINATION_GONE = "destination_gone"  # channel archived or not found, 404, 410
    RECIPIENT_REFUSED = "recipient_refused"  # this mailbox was refused, others may be fine
    TARGET_GONE = "target_gone"  # the message to be edited no longer exists
    REJECTED = "rejected"  # the provider refuses the message itself
    ADDRESS_REFUSED = "address_refused"  # a private address that the settings do not allow
    REDIRECTED = "redirected"  # redirects are never followed
    INTERRUPTED = "interrupted"  # Handbell ended before the answer was recorded; the engine's own, never a channel's
    UNEXPECTED = "unexpected"  # an exception out of a channel: a bug, recorded and retried


@dataclass(frozen=True, slots=True)
class Sent:
    """The provider has it; `provider_ref` is its name of the message, enough for the channel to edit or answer it."""

    provider_ref: str | None


@dataclass(frozen=True, slots=True)
class Temporary:
    """Nothing was accepted; try again, not before `retry_after` where the provider named one."""

    reason: FailureReason
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Permanent:
    """Trying again changes nothing until a person acts."""

    reason: FailureReason


@dataclass(frozen=True, slots=True)
class Unknown:
    """The provider may have it: the connection was lost or timed out after the message was handed over."""

    reason: FailureReason


Outcome = Sent | Temporary | Permanent | Unknown
