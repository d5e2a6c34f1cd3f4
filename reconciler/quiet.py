"""Hours in which nobody is told, by the wall clock of a time zone: when do they end, if they are now?

A time that a clock change shows twice begins the quiet at its first and ends it at its second showing; one that a
change skips stands for the moment of the change. So quiet hours are never shorter than the clock on the wall says.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo

from reconciler.states import Kind

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Quiet:
    """From `begins_at` up to, not including, `ends_at` in `zone` (an IANA name), over midnight where it ends earlier.

    Kinds that fit one of `except_kinds` (shell globs) break through.
    """

    begins_at: time
    ends_at: time
    zone: str
    except_kinds: tuple[str, ...] = ()

    def holds(self, kind: Kind) -> bool:
        """Answer whether requests of this kind are held."""
        return not any(fnmatchcase(kind.value, glob) for glob in self.except_kinds)

    def end_after(self, at: datetime) -> datetime | None:
        """Return when the quiet that `at` falls into ends, in UTC; None where it is not quiet then."""
        for begins_at, ends_at in self._spans_near(at):
            if begins_at <= at < ends_at:
                return ends_at
        return None

    def _spans_near(self, at: datetime) -> Iterator[tuple[datetime, datetime]]:
        zone = ZoneInfo(self.zone)
        today = at.astimezone(zone).date()
        for day in (today - _DAY, today):
            last_day = day if self.begins_at < self.ends_at else day + _DAY
            yield (
                _instant(day, self.begins_at, zone, is_later=False),
                _instant(last_day, self.ends_at, zone, is_later=True),
            )


def _instant(day: date, wall: time, zone: ZoneInfo, *, is_later: bool) -> datetime:
    local = datetime.combine(day, wall, tzinfo=zone)
    first, second = local.replace(fold=0).astimezone(UTC), local.replace(fold=1).astimezone(UTC)
    if first > second:  # skipped: `fold` then says by which of the two offsets it is read
        return _change_between(second, first, zone)
    return second if is_later else first


def _change_between(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the first whole second that has the offset of `after`."""
    low, high = int(before.timestamp()), int(after.timestamp())
    target = after.astimezone(zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == target:
            high = middle
        else:
            low = middle
    return datetime.fromtimestamp(high, UTC)
