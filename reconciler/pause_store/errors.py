"""What the SQL ledger refuses beyond the capability's own refusals, and how it says that it could not decide.

HumanInteractionError
  PauseStoreUnavailableError    the database could not say: nothing is decided, the same call may be made again
  PauseTokenError
    AlreadyAnsweredError        the request was answered, with this token or another one
    PauseTokenReplayedError
      TokenRevokedError         an operator took the token back before anybody redeemed it
"""

from reconciler.pauses import HumanInteractionError, PauseTokenError, PauseTokenReplayedError


class PauseStoreUnavailableError(HumanInteractionError):
    """The database is locked, down, or gave up on the transaction.

    It is never a verdict on a token: whoever asked may ask again, and a transport answers 503 with Retry-After.
    """


class AlreadyAnsweredError(PauseTokenError):
    """The request has its one answer; this one was not taken, whichever token brought it."""


class TokenRevokedError(PauseTokenReplayedError):
    """The token was revoked; for whoever holds it that is as good as spent."""
