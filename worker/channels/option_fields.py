"""The kinds of value that the tables of several channels have: durations, rates, secret URLs, templates."""

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from yarl import URL

from config.durations import Duration
from config.written import Written
from worker.channels.templates import check_template

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_RATE = re.compile(r"([1-9]\d{0,5})/(s|m|h)", re.ASCII)

_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})

# A send waits at most twice for its provider (a mail's envelope and the mail; a settle's edits): with this its end
# comes before the engine's own bound of 60 s, which would make every fate unknown.
MAX_TIMEOUT = timedelta(seconds=25)

UNLIMITED = "unlimited"


def parse_rate(value: Any) -> timedelta:
    """Read `1/s`, `20/m` or `100/h` as the least time between two messages; `unlimited` is none at all."""
    if value == UNLIMITED:
        return timedelta(0)
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'must be a rate such as "1/s" or "20/m", or "{UNLIMITED}"')
    return timedelta(seconds=_UNITS[match[2]] / int(match[1]))


def check_secret_url(value: SecretStr) -> SecretStr:
    """Return an http(s) URL unchanged; raises ValueError without repeating it, for it may hold a secret."""
    text = value.get_secret_value()
    try:
        url = URL(text)
    except ValueError:
        raise ValueError("is not a URL") from None
    if url.scheme not in ("http", "https") or not url.host or any(char.isspace() for char in text):
        raise ValueError("must be an http:// or https:// URL")
    return value


def check_api_url(value: str) -> str:
    """Return an API's address with a slash at the end; a token goes there, so only this machine may do without TLS."""
    url = URL(check_secret_url(SecretStr(value)).get_secret_value())
    if url.scheme != "https" and url.host not in _THIS_MACHINE:
        raise ValueError("must be https://, for the token is sent there")
    return value if value.endswith("/") else value + "/"


Rate = Annotated[timedelta, BeforeValidator(parse_rate), Written('"N/s", "N/m", "N/h" or "unlimited"')]
SecretUrl = Annotated[SecretStr, AfterValidator(check_secret_url), Written("secret http(s) URL")]
ApiUrl = Annotated[str, AfterValidator(check_api_url), Written("https URL")]
Template = Annotated[str, AfterValidator(check_template)]
Timeout = Annotated[Duration, Field(gt=timedelta(0), le=MAX_TIMEOUT)]
