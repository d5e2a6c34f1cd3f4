"""How a duration is written in the settings and on the command line: "30s", "5m", "1h30m", "2d"."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator

_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1), "s": timedelta(seconds=1)}
_FORM = re.compile("".join(f"(?:([0-9]{{1,9}}){unit})?" for unit in _UNITS))
_EXAMPLES = 'a duration is written like "30s", "5m", "1h30m" or "2d"'


def parse_duration(text: str) -> timedelta:
    """Read days, hours, minutes and seconds, in this order, each with its unit and at most once.

    Raises ValueError (one line) for anything else; a number without a unit is refused, never guessed.
    """
    match = _FORM.fullmatch(text)
    if match is None or not text:
        raise ValueError(_EXAMPLES)
    amounts = zip(match.groups(), _UNITS.values(), strict=True)
    try:
        return sum((int(amount) * unit for amount, unit in amounts if amount), timedelta())
    except OverflowError:
        raise ValueError("a duration this long cannot be counted") from None


def format_duration(duration: timedelta) -> str:
    """Write whole seconds as `parse_duration` reads them, in the largest units."""
    rest = duration
    text = ""
    for unit, length in _UNITS.items():
        amount, rest = divmod(rest, length)
        text += f"{amount}{unit}" if amount else ""
    return text or "0s"


def _from_setting(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{_EXAMPLES}, in quotes")  # noqa: TRY004  # pydantic shows only ValueErrors
    return parse_duration(value)


# The type of every duration among the settings.
Duration = Annotated[timedelta, BeforeValidator(_from_setting)]
