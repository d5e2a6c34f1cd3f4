"""What an SMTP server's reply or silence means, by the phase it comes in.

Until the mail itself is sent nothing can have been accepted; from DATA on, silence means that it may have been.
Source of the reply codes: RFC 5321 4.2 and 4.3.2, RFC 4954 6 (authentication).
"""

from enum import StrEnum

from aiosmtplib import (
    SMTPAuthenticationError,
    SMTPConnectError,
    SMTPException,
    SMTPRecipientRefused,
    SMTPResponseException,
)

from worker.channels.outcomes import FailureReason, Outcome, Permanent, Temporary, Unknown

# What the client may raise (TLS errors are OSErrors); every other exception is a bug.
SMTP_ERRORS = (SMTPException, TimeoutError, OSError)

# RFC 4954 6: authentication required, mechanism too weak, credentials invalid, encryption required.
_AUTHENTICATION_CODES = frozenset({530, 534, 535, 538})


class Phase(StrEnum):
    """How far the exchange came."""

    ENVELOPE = "envelope"  # connecting, logging in, MAIL, RCPT: nothing was handed over
    DATA = "data"  # from DATA to its last reply: the server may have the mail


def outcome_of_error(error: BaseException, phase: Phase) -> Outcome:
    """Translate what the client raised in `phase`."""
    if isinstance(error, SMTPResponseException):
        return _outcome_of_reply(error, phase)
    if phase is Phase.DATA:
        return Unknown(FailureReason.TIMED_OUT if isinstance(error, TimeoutError) else FailureReason.CONNECTION_LOST)
    if isinstance(error, SMTPConnectError):
        return Temporary(FailureReason.UNREACHABLE)
    if isinstance(error, TimeoutError):
        return Temporary(FailureReason.TIMED_OUT)
    if isinstance(error, ConnectionError):
        return Temporary(FailureReason.CONNECTION_LOST)
    if isinstance(error, SMTPException):
        # STARTTLS or AUTH is not offered: nothing was said, and it stays so until a person acts.
        return Permanent(FailureReason.UNREACHABLE)
    return Temporary(FailureReason.UNREACHABLE)


def _outcome_of_reply(error: SMTPResponseException, phase: Phase) -> Outcome:
    if 400 <= error.code < 500:
        return Temporary(FailureReason.SERVER_ERROR)
    if 500 <= error.code < 600:
        return Permanent(_refusal(error))
    if phase is Phase.DATA:
        return Unknown(FailureReason.BAD_ANSWER)
    return Temporary(FailureReason.BAD_ANSWER)


def _refusal(error: SMTPResponseException) -> FailureReason:
    if isinstance(error, SMTPAuthenticationError) or error.code in _AUTHENTICATION_CODES:
        return FailureReason.UNAUTHORIZED
    if isinstance(error, SMTPRecipientRefused):
        return FailureReason.RECIPIENT_REFUSED
    return FailureReason.REJECTED
