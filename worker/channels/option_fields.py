"""The kinds of value that the tables of several channels have: durations, rates, secret URLs, templates."""

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from yarl import URL

from worker.channels.templates import check_template

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_RATE = re.compile(r"([1-9]\d{0,5})/(s|m|h)", re.ASCII)

UNLIMITED = "unlimited"


def parse_duration(value: Any) -> timedelta:
    """Read `250ms`, `10s`, `5m` or `1h`; raises ValueError with one line."""
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('must be a duration such as "10s" or "5m"')
    return timedelta(seconds=float(match[1]) * _UNITS[match[2]])


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


Rate = Annotated[timedelta, BeforeValidator(parse_rate)]
SecretUrl = Annotated[SecretStr, AfterValidator(check_secret_url)]
Template = Annotated[str, AfterValidator(check_template)]
Timeout = Annotated[
    timedelta, BeforeValidator(parse_duration), Field(ge=timedelta(milliseconds=50), le=timedelta(seconds=60))
]
