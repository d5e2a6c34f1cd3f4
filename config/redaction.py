"""Takes secrets out of what is logged: by the key's name, and by their form inside any text.

A last net, not a licence: nothing is logged in the hope that this catches it.
"""

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

REDACTED = "[redacted]"

_SECRET_KEY = re.compile(
    r"(?i)token|secret|password|passwd|passphrase|authorization|credential|cookie|api[_-]?key|private[_-]?key|signature"
)
_URL_KEY = re.compile(r"(?i)(^|_)(url|uri|dsn)$")

_USER_INFO = re.compile(r"(?i)([a-z][a-z0-9+.-]*://)[^\s/?#\"']*@")
_QUERY = re.compile(r"(?i)([a-z][a-z0-9+.-]*://[^\s?#\"'<>]*)\?[^\s#\"'<>]*")
_PATH = re.compile(r"(?i)([a-z][a-z0-9+.-]*://[^\s/?#\"'<>]+/)[^\s\"'<>]+")
# An incoming webhook's secret is its path: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
_SLACK_HOOK = re.compile(r"(?i)(https://hooks\.slack[a-z-]*\.com/)[^\s\"'<>]+")
# Slack's tokens (https://docs.slack.dev/authentication/tokens), Standard Webhooks secrets, HTTP credentials.
_TOKEN = re.compile(
    r"(?i)\b(?:xox[a-z](?:\.xox[a-z])?-|xapp-|whsec_)[A-Za-z0-9+/=_-]+|\b(?:Bearer|Basic)\s+[\w.~+/=-]{6,}"
)


def redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace what is secret in `event` (a structlog processor; comes after exceptions became text)."""
    for key, value in event.items():
        event[key] = _of_key(key, value)
    return event


def redacted_text(text: str) -> str:
    """Return `text` without credentials, queries and Slack hooks of URLs, and without known forms of tokens."""
    text = _USER_INFO.sub(rf"\1{REDACTED}@", text)
    text = _SLACK_HOOK.sub(rf"\1{REDACTED}", text)
    text = _QUERY.sub(rf"\1?{REDACTED}", text)
    return _TOKEN.sub(REDACTED, text)


def _of_key(key: object, value: Any) -> Any:
    if isinstance(key, str) and value is not None and not isinstance(value, bool | int | float):
        if _SECRET_KEY.search(key):
            return REDACTED
        if _URL_KEY.search(key) and not isinstance(value, Mapping | list | tuple):
            return _PATH.sub(rf"\1{REDACTED}", redacted_text(str(value)))
    return _of_value(value)


def _of_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {key: _of_key(key, inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_of_value(inner) for inner in value]
    return redacted_text(str(value))
