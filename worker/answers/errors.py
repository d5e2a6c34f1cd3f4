"""What goes wrong with keys and with the tokens that they sign.

AnswersError
  KeysetUnavailableError    the keys cannot be read now: nothing is known about a token (`code` says so)
  TokenRefusedError         the token is not one of ours as it stands
  TokenTooLongError         a token of these claims would not fit where tokens travel
"""

from reconciler.pauses import KEYSET_UNAVAILABLE


class AnswersError(Exception):
    """Something about an answer's token or its keys; no message holds either."""


class KeysetUnavailableError(AnswersError):
    """The keys cannot be read now; a token may be good, and trying again later may show it."""

    code = KEYSET_UNAVAILABLE


class TokenRefusedError(AnswersError):
    """The token is not one that a key of ours signed as it stands; the message is a fixed word."""


class TokenTooLongError(AnswersError):
    """The signed token would be longer than any token is read."""
