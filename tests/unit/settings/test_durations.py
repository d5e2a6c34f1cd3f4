"""Durations are written with their units, and never guessed."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("2d", timedelta(days=2)),
        ("1d2h3m4s", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("90m", timedelta(minutes=90)),
        ("0s", timedelta()),
    ],
)
def test_duration_is_read(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["", "5", "5 m", "m", "-5m", "1.5h", "30m1h", "5m5m", "5M", "5ms", "٥m", "5m\n"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match='"1h30m"'):
        parse_duration(text)


def test_duration_beyond_counting_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be counted"):
        parse_duration("999999999d999999999h")


@given(st.integers(min_value=0, max_value=10**9))
def test_what_is_written_is_read_back(seconds: int) -> None:
    duration = timedelta(seconds=seconds)

    assert parse_duration(format_duration(duration)) == duration
