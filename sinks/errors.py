"""The errors of the room where events get in.

InboxError
  MalformedEntry            a stream entry is not a hint; kept as a dead letter
"""


class InboxError(Exception):
    """Something in the way in failed."""


class MalformedEntry(InboxError):  # noqa: N818  # it states a fact (style: errors end in Error or state a fact)
    """A stream entry cannot be read as a hint; `reason` is a fixed word, never the entry's content."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
