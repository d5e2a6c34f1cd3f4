"""How untrusted text is made fit for a channel: cleaned to one line, escaped for its markup, cut at a whole sign."""

import html
import unicodedata
from collections.abc import Callable
from urllib.parse import urlsplit

# What stands for the part that was cut off; one UTF-16 unit.
MARK = "…"

# A name longer than this (in UTF-16 units) is no name; our own choice, far below every provider's limit.
MAX_NAME_UNITS = 100

# Links longer than this are dropped: browsers and mail gateways begin to cut them near it (our own choice).
MAX_LINK_CHARS = 2000

Escape = Callable[[str], str]

_ZERO_WIDTH_JOINER = "\u200d"
_KEPT_FORMAT_CHARS = frozenset({"\u200c", _ZERO_WIDTH_JOINER})
_SPACING_CATEGORIES = frozenset({"Cc", "Zl", "Zp", "Zs"})
_JOINING_CATEGORIES = frozenset({"Mn", "Mc", "Me"})
_MRKDWN = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_IN_SLACK_LINK = str.maketrans({"&": "&amp;", "<": "%3C", ">": "%3E", "|": "%7C"})


def one_line(text: str) -> str:
    """Return `text` on one line: controls become spaces, invisible direction marks go, runs of space shrink to one.

    A lone surrogate, which no encoding can carry, becomes U+FFFD.
    """
    return " ".join("".join(map(_shown, text)).split())


def name(text: str) -> str:
    """Return an untrusted name or label, cleaned and cut to `MAX_NAME_UNITS`; not yet escaped."""
    return cut(one_line(text[: MAX_NAME_UNITS * 10]), MAX_NAME_UNITS)


def units(text: str) -> int:
    """Count UTF-16 units: vendors limit «characters» without saying which, and no plausible count is higher."""
    return sum(2 if ord(char) > 0xFFFF else 1 for char in text)


def cut(text: str, max_units: int, *, is_markup: bool = False) -> str:
    """Shorten `text` to at most `max_units` UTF-16 units with a mark at the end; text that fits is unchanged.

    Never splits what is seen as one character; with `is_markup` (text already escaped for HTML or Slack) never
    splits an entity or a `<...>` either.
    """
    assert max_units >= 1, "the mark itself needs room"
    if units(text) <= max_units:
        return text
    end = _boundary(text, _chars_within(text, max_units - units(MARK)))
    if is_markup:
        end = _before_open_markup(text, end)
    return text[:end].rstrip() + MARK


def escape_mrkdwn(text: str) -> str:
    """Escape for Slack's mrkdwn: what is escaped pings nobody and links nowhere.

    Source: https://docs.slack.dev/messaging/formatting-message-text#escaping (read 2026-11-30).
    """
    return text.translate(_MRKDWN)


def escape_html(text: str) -> str:
    """Escape for HTML text and quoted attributes."""
    return html.escape(text, quote=True)


def escape_header(text: str) -> str:
    """Make text fit for a mail header: on one line, and never an encoded word (RFC 2047).

    Python's email library decodes an encoded word when a header is set, line breaks included, and writes what it
    decoded: `=?utf-8?q?=0D=0ABcc:...?=` in a name would become a header of its own.
    """
    return one_line(text).replace("=?", "= ?")


def as_is(text: str) -> str:
    """Return plain text for a channel without markup."""
    return text


def web_link(url: str | None) -> str | None:
    """Return `url` if it is a plain http(s) address of bearable length, else None."""
    if url is None or len(url) > MAX_LINK_CHARS or one_line(url) != url or " " in url:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.netloc else None


def slack_link(url: str, label: str) -> str:
    """Write a link in mrkdwn; `label` is ours and needs no escaping."""
    return f"<{url.translate(_IN_SLACK_LINK)}|{label}>"


def _shown(char: str) -> str:
    category = unicodedata.category(char)
    if category in _SPACING_CATEGORIES:
        return " "
    if category == "Cs":
        return "\ufffd"
    if category == "Cf" and char not in _KEPT_FORMAT_CHARS and not _is_tag(char):
        return ""
    return char


def _chars_within(text: str, max_units: int) -> int:
    used = 0
    for position, char in enumerate(text):
        used += units(char)
        if used > max_units:
            return position
    return len(text)


def _boundary(text: str, end: int) -> int:
    """Move `end` back to where one seen character ends; stay where there is none (a letter under endless marks)."""
    position = end
    while position > 0 and position < len(text) and _joins(text, position):
        position -= 1
    return position or end


def _joins(text: str, position: int) -> bool:
    char, before = text[position], text[position - 1]
    if before == _ZERO_WIDTH_JOINER or char == _ZERO_WIDTH_JOINER:
        return True
    if unicodedata.category(char) in _JOINING_CATEGORIES or _is_tag(char) or "\U0001f3fb" <= char <= "\U0001f3ff":
        return True
    return _is_flag_half(char) and _flag_halves_before(text, position) % 2 == 1


def _flag_halves_before(text: str, position: int) -> int:
    start = position
    while start > 0 and _is_flag_half(text[start - 1]):
        start -= 1
    return position - start


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _is_tag(char: str) -> bool:
    return "\U000e0020" <= char <= "\U000e007f"


def _before_open_markup(text: str, end: int) -> int:
    head = text[:end]
    angle, entity = head.rfind("<"), head.rfind("&")
    if angle > head.rfind(">"):
        end = angle
    if entity > head.rfind(";"):
        end = min(end, entity)
    return end
