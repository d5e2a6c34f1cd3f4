"""The errors of the agent's side. No text of them holds a URL, a secret or anything of an event.

EmitError
  SinkConfigError           an argument of the sink cannot be used (also a ValueError)
  MalformedHint             fields that are not a hint; `reason` is one fixed word
  HintNotDurable            the hint is not known to be safe; the runtime's persisted delivery retries it
  PauseNotCaptured          Handbell is not known to have a pause's token; people are told of it all the same
"""

from enum import StrEnum


class EmitError(Exception):
    """Something on the agent's side failed."""


class SinkConfigError(EmitError, ValueError):
    """An argument of the sink or of the recovery loop cannot be used as it is."""


class Malformation(StrEnum):
    """Why fields are not a hint."""

    MISSING = "missing_field"
    NOT_UTF8 = "not_utf8"
    NUL = "nul_character"
    TOO_LONG = "field_too_long"
    VERSION = "unknown_version"
    INSTANT = "bad_instant"


class MalformedHint(EmitError):  # noqa: N818  # it states a fact
    """Fields that are not a hint; `reason` is a fixed word, never their content."""

    def __init__(self, reason: Malformation) -> None:
        super().__init__(reason.value)
        self.reason = reason


class NotDurableReason(StrEnum):
    """Why a hint is not known to be safe; the value is the error's whole text."""

    TIMEOUT = "no acknowledgement within the timeout"
    BREAKER_OPEN = "no acknowledgement lately: failing fast until a probe succeeds"
    UNREACHABLE = "the Redis server cannot be reached"
    REFUSED = "the Redis server refused the command"
    NOT_FSYNCED = "the append-only file was not written within the timeout"
    NO_AOF = "the Redis server does not keep what ack='aof' promises"


class HintNotDurable(EmitError):  # noqa: N818  # it states a fact
    """The hint may or may not have arrived; sending it again is safe, since the inbox deduplicates."""

    def __init__(self, reason: NotDurableReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class NotCapturedReason(StrEnum):
    """Why a pause is not known to be captured; the value is the error's whole text."""

    TIMEOUT = "no answer from Handbell within the timeout"
    UNREACHABLE = "Handbell cannot be reached"
    BUSY = "Handbell could not commit the pause now"
    REFUSED = "Handbell refuses the pause: check the capture URL and its token"


class PauseNotCaptured(EmitError):  # noqa: N818  # it states a fact
    """A pause may or may not have been captured; capturing it again is safe. It can be answered where it was shown."""

    def __init__(self, reason: NotCapturedReason) -> None:
        super().__init__(reason.value)
        self.reason = reason
