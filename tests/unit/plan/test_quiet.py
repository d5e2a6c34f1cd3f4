"""Quiet hours by the wall clock: over midnight, and on the days on which the clocks change."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.quiet import Quiet
from reconciler.states import Kind

NEW_YORK = ZoneInfo("America/New_York")


def local(text: str, *, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=NEW_YORK, fold=fold).astimezone(UTC)


def quiet(begins: str, ends: str, zone: str = "America/New_York") -> Quiet:
    return Quiet(time.fromisoformat(begins), time.fromisoformat(ends), zone)


@pytest.mark.parametrize(
    ("begins", "ends", "at", "expected"),
    [
        ("19:00", "23:00", "2026-07-01 18:59:59", None),
        ("19:00", "23:00", "2026-07-01 19:00", "2026-07-01 23:00"),
        ("19:00", "23:00", "2026-07-01 22:59:59", "2026-07-01 23:00"),
        ("19:00", "23:00", "2026-07-01 23:00", None),
        ("19:00", "23:00", "2026-03-08 19:00", "2026-03-08 23:00"),
        ("19:00", "23:00", "2026-11-01 22:59", "2026-11-01 23:00"),
        ("22:00", "07:00", "2026-07-01 21:59", None),
        ("22:00", "07:00", "2026-07-01 22:00", "2026-07-02 07:00"),
        ("22:00", "07:00", "2026-07-02 00:00", "2026-07-02 07:00"),
        ("22:00", "07:00", "2026-07-02 06:59:59", "2026-07-02 07:00"),
        ("22:00", "07:00", "2026-07-02 07:00", None),
        ("22:00", "07:00", "2026-03-08 01:59", "2026-03-08 07:00"),
        ("22:00", "07:00", "2026-11-01 01:30", "2026-11-01 07:00"),
        # 02:30 is skipped on 8 March: the clocks go from 02:00 to 03:00.
        ("22:00", "02:30", "2026-03-08 01:59", "2026-03-08 03:00"),
        ("22:00", "02:30", "2026-03-08 03:00", None),
        ("02:30", "05:00", "2026-03-08 03:00", "2026-03-08 05:00"),
        ("02:30", "05:00", "2026-03-08 01:59", None),
    ],
)
def test_quiet_by_the_clock_on_the_wall(begins: str, ends: str, at: str, expected: str | None) -> None:
    assert quiet(begins, ends).end_after(local(at)) == (local(expected) if expected else None)


def test_time_that_is_shown_twice_begins_at_the_first_and_ends_at_the_second() -> None:
    first, second = local("2026-11-01 01:30"), local("2026-11-01 01:30", fold=1)

    assert second - first == timedelta(hours=1)
    assert quiet("22:00", "01:30").end_after(first) == second
    assert quiet("22:00", "01:30").end_after(second) is None
    assert quiet("01:30", "04:00").end_after(first) == local("2026-11-01 04:00")
    assert quiet("01:30", "04:00").end_after(first - timedelta(seconds=1)) is None


def test_kinds_that_break_through_are_not_held() -> None:
    night = Quiet(time(22), time(7), "Europe/Berlin", except_kinds=("manual_*",))

    assert not night.holds(Kind.MANUAL_RECOVERY)
    assert night.holds(Kind.TOOL_APPROVAL)


@given(
    st.sampled_from(["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]),
    st.times().map(lambda at: at.replace(second=0, microsecond=0)),
    st.times().map(lambda at: at.replace(second=0, microsecond=0)),
    st.integers(0, 730 * 24 * 60).map(lambda minutes: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)),
)
def test_end_is_later_and_is_itself_not_quiet(zone: str, begins: time, ends: time, at: datetime) -> None:
    if begins == ends:
        return
    hours = Quiet(begins, ends, zone)

    end = hours.end_after(at)

    if end is not None:
        assert at < end <= at + timedelta(hours=25)
        assert hours.end_after(end) is None
