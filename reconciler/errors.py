"""The errors of the room that knows what is true.

ReconcilerError
  SourceError               a source failed as a whole; what it could not show stays as it was
    SourceUnavailable       it does not answer; may recover by itself
    SourceRefused           it answers, but not to us: credentials or configuration must change
    WrongStore              another store stands under this namespace's name than the one it knows
  UnknownNamespace          a namespace without a source was named
  UnknownAttention          no notification has the attention id
  AmbiguousAttention        an attention id exists in several namespaces
  SettledAttention          the request that a person spoke of is over
  UnknownSilence            no silence that has not ended has the number
"""


class ReconcilerError(Exception):
    """Something about what is true could not be found out."""


class SourceError(ReconcilerError):
    """A source failed as a whole; `reason` is a fixed word, never the runtime's own text."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class SourceUnavailable(SourceError):  # noqa: N818  # states a fact
    """The source does not answer now; asked again later it may."""


class SourceMissing(SourceUnavailable):
    """Nothing stands where the configuration says; a person looks there first, but it may still appear."""


class SourceRefused(SourceError):  # noqa: N818  # states a fact
    """The source answers but refuses: a person must change the configuration."""


class WrongStore(SourceError):  # noqa: N818  # states a fact
    """The store found under a namespace is not the one that the namespace remembers."""


class UnknownNamespace(ReconcilerError):  # noqa: N818  # states a fact
    """No configured source has this namespace."""


class UnknownAttention(ReconcilerError):  # noqa: N818  # states a fact
    """No notification has the attention id that was named."""


class AmbiguousAttention(ReconcilerError):  # noqa: N818  # states a fact
    """An attention id exists in more than one namespace; the caller must name one."""


class SettledAttention(ReconcilerError):  # noqa: N818  # states a fact
    """The request that a person spoke of is over."""


class UnknownSilence(ReconcilerError):  # noqa: N818  # states a fact
    """No silence that has not ended has the number that was named."""
