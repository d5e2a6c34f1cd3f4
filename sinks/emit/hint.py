"""The hint: what travels from an agent to Handbell, and all that ever does.

It names a session that may have changed and carries nothing of the event's payload. The emitter makes it and
writes its fields to the stream; the consumer reads them back. A `Hint` that exists is within its bounds.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from .errors import Malformation, MalformedHint

VERSION = "1"
NAMESPACE_CHARS = 200
SESSION_ID_CHARS = 512
EVENT_ID_CHARS = 512
TYPE_CHARS = 100
_INSTANT_CHARS = 64
_MAX_UTF8_BYTES = 4  # of one character (RFC 3629, section 3)

_REPLY = re.compile(rb"[0-9a-f]{32}")
# RFC 3339, section 5.6: a full date, a full time and an offset; the standard library alone reads far more forms.
_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


@dataclass(frozen=True, slots=True)
class Hint:
    """A bounded note that a session may have changed; `MalformedHint` where a field is out of its bounds."""

    namespace: str
    session_id: str
    event_id: str
    type: str
    occurred_at: datetime

    def __post_init__(self) -> None:
        """Refuse a text that no database would take, or that is beyond its bound."""
        _check(self.namespace, NAMESPACE_CHARS)
        _check(self.session_id, SESSION_ID_CHARS)
        _check(self.event_id, EVENT_ID_CHARS)
        _check(self.type, TYPE_CHARS)
        if self.occurred_at.tzinfo is None:
            raise MalformedHint(Malformation.INSTANT)

    def to_fields(self, reply: str | None = None) -> dict[str, str]:
        """Return the stream entry's fields; `reply` is the emitter's token, 32 lower-case hex digits."""
        fields = {
            "v": VERSION,
            "namespace": self.namespace,
            "session_id": self.session_id,
            "event_id": self.event_id,
            "type": self.type,
            "occurred_at": self.occurred_at.astimezone(UTC).isoformat(timespec="microseconds"),
        }
        if reply is not None:
            fields["reply"] = reply
        return fields


def parse(fields: Mapping[bytes, bytes]) -> tuple[Hint, str | None]:
    """Read a stream entry: the hint, and the token to answer on if a valid one was given.

    Fields of other names are ignored, and so is a token that is none: the hint counts. Raises `MalformedHint`.
    """
    if fields.get(b"v") is None:
        raise MalformedHint(Malformation.MISSING)
    if fields[b"v"] != VERSION.encode():
        raise MalformedHint(Malformation.VERSION)
    hint = Hint(
        namespace=_text(fields, b"namespace", NAMESPACE_CHARS),
        session_id=_text(fields, b"session_id", SESSION_ID_CHARS),
        event_id=_text(fields, b"event_id", EVENT_ID_CHARS),
        type=_text(fields, b"type", TYPE_CHARS),
        occurred_at=_instant(_text(fields, b"occurred_at", _INSTANT_CHARS)),
    )
    token = fields.get(b"reply", b"")
    return hint, token.decode("ascii") if _REPLY.fullmatch(token) else None


def _text(fields: Mapping[bytes, bytes], name: bytes, limit_chars: int) -> str:
    raw = fields.get(name)
    if not raw:
        raise MalformedHint(Malformation.MISSING)
    if len(raw) > limit_chars * _MAX_UTF8_BYTES:
        raise MalformedHint(Malformation.TOO_LONG)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedHint(Malformation.NOT_UTF8) from None


def _check(value: str, limit_chars: int) -> None:
    if not value:
        raise MalformedHint(Malformation.MISSING)
    if len(value) > limit_chars:
        raise MalformedHint(Malformation.TOO_LONG)
    if "\0" in value:  # PostgreSQL refuses it in any text
        raise MalformedHint(Malformation.NUL)
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        raise MalformedHint(Malformation.NOT_UTF8)


def _instant(text: str) -> datetime:
    if not _RFC_3339.fullmatch(text):
        raise MalformedHint(Malformation.INSTANT)
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise MalformedHint(Malformation.INSTANT) from None
