"""Every refusal of the capability, each class one fact, so that a transport can choose its answer by class.

    HumanInteractionError                       base of all
      PauseTokenError                           the token is refused
        PauseTokenUnauthorizedError             forged, edited, unreadable, of another schema (carries `code`)
        PauseTokenExpiredError                  real, its window is closed
        PauseTokenReplayedError                 real, somebody redeemed it already
        ScopeBindingError                       another tenant's, or a scope that names no tenant
        SessionBindingError                     another session of the same tenant
        RunBindingError                         another run of the same session
        CallBindingError                        another call of the same run
        PayloadBindingError                     the request is not the one that was hashed, or cannot be read
        UnissuedTokenError                      well signed, but the ledger never issued it
      InteractionConfigurationError             (ValueError) wiring that cannot work
        ConsumptionDurabilityError              durable checkpoints beside a volatile record of redemptions
      InteractionRegistrationError              (ValueError) an interaction that cannot be described
        DuplicateInteractionError               two registrations claim one name
      UnknownInteractionError                   (KeyError) no registration of that name
      ResponseValidationError                   (ValueError) the answer does not fit the question
      CheckpointLostError                       the record is gone and nobody had promised to keep it
      PauseCheckpointNotFoundError              a durable backend has no such record
      TurnStateNotRecordedError                 the recorded turn is another one than the token binds
      RetirementHorizonError                    the horizon is in the past, stands already, or forbids an issuance
      TokenLedgerError                          a record that contradicts what the ledger holds
      TokenTTLError                             (ValueError) a lifetime outside its bound; never clamped
      OperatedPlatformOnlyError                 asked of a service that keeps no ledger

No message holds a token, a question or an answer.
"""

from typing import Self

KEYSET_UNAVAILABLE = "keyset_unavailable"
"""The signer could not reach its keys (the documentation leaves the spelling open; this one is ours).

The token may be good: a transport answers 503 with Retry-After, not 401."""

_AVAILABILITY_CODES = frozenset({KEYSET_UNAVAILABLE})


def availability_code(cause: BaseException) -> str | None:
    """Return the code of a refusal that says nothing about the token, else None."""
    code = getattr(cause, "code", None)
    return code if isinstance(code, str) and code in _AVAILABILITY_CODES else None


class HumanInteractionError(Exception):
    """Something in a pause, its token or its answer was refused."""


class PauseTokenError(HumanInteractionError):
    """The token is refused; the subclass says why."""


class PauseTokenUnauthorizedError(PauseTokenError):
    """Nobody who may sign made this token as it stands.

    `code` is `unauthorized` (the nearest published relative's word; the documentation names none) or, where
    the keys could not be asked, `keyset_unavailable`.
    """

    code: str = "unauthorized"

    def __init__(self, *args: object, code: str | None = None) -> None:
        super().__init__(*args)
        if code is not None:
            self.code = code

    @classmethod
    def from_signer_refusal(cls, cause: BaseException) -> Self:
        """Return the refusal for whatever the signer raised; its availability code is kept."""
        return cls(f"the pause token was not accepted: {cause}", code=availability_code(cause))


class PauseTokenExpiredError(PauseTokenError):
    """The token is real and its window is closed."""


class PauseTokenReplayedError(PauseTokenError):
    """The token is real and was redeemed already."""


class ScopeBindingError(PauseTokenError):
    """The presented scope is not the one the token was minted in, or names no tenant."""


class SessionBindingError(PauseTokenError):
    """The token belongs to another session of the same tenant."""


class RunBindingError(PauseTokenError):
    """The token belongs to another run of the same session."""


class CallBindingError(PauseTokenError):
    """The token belongs to another call of the same run."""


class PayloadBindingError(PauseTokenError):
    """The request is not the one that was hashed, cannot be read, or has no key to be found under."""


class UnissuedTokenError(PauseTokenError):
    """The envelope is in order, but the ledger never issued this token."""


class InteractionConfigurationError(HumanInteractionError, ValueError):
    """The wiring cannot work; nothing about one token or one request."""


class ConsumptionDurabilityError(InteractionConfigurationError):
    """Checkpoints outlive the process while redemptions do not: a token would be good again after a restart."""


class InteractionRegistrationError(HumanInteractionError, ValueError):
    """A named interaction is not describable."""


class DuplicateInteractionError(InteractionRegistrationError):
    """Two registrations claim one name."""


class UnknownInteractionError(HumanInteractionError, KeyError):
    """No registration of that name; `except KeyError` catches it too."""

    def __str__(self) -> str:
        """Return the sentence itself; KeyError would show it in quotes."""
        return Exception.__str__(self)


class ResponseValidationError(HumanInteractionError, ValueError):
    """The answer does not fit the response schema, or not this question. The token stays good."""


class CheckpointLostError(HumanInteractionError):
    """The record is gone from a backend that never promised to keep it."""


class PauseCheckpointNotFoundError(HumanInteractionError):
    """A durable backend has no such checkpoint, or no checkpoint id can be resolved."""


class TurnStateNotRecordedError(HumanInteractionError):
    """The recorded turn state describes another turn than the token binds."""


class RetirementHorizonError(HumanInteractionError):
    """The horizon lies in the past, stands already, or forbids this issuance."""


class TokenLedgerError(HumanInteractionError):
    """A record contradicts what the ledger already holds."""


class TokenTTLError(HumanInteractionError, ValueError):
    """A lifetime outside its bound. It is refused and never clamped."""


class OperatedPlatformOnlyError(HumanInteractionError):
    """Only a service with an issuance ledger can answer this."""
