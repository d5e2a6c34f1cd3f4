"""When is a delivery tried again, and when no more? Capped exponential delays with jitter, as values and as a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

# Every delay is moved by up to this part of itself, either way: deliveries that failed together come back apart.
JITTER = 0.2

_LARGEST_EXPONENT = 30


@dataclass(frozen=True, slots=True)
class BackOff:
    """The schedule of retries.

    With the values given here a receiver that is down sees at most 10 tries of a delivery in the first ten minutes.
    """

    base: timedelta = timedelta(seconds=2)
    cap: timedelta = timedelta(minutes=10)
    max_attempts: int = 200
    max_age: timedelta = timedelta(hours=24)

    def nominal(self, attempt: int) -> timedelta:
        """Return the delay after the failed try number `attempt` (from 1), before jitter."""
        assert attempt >= 1, "tries count from 1"
        factor: int = 2 ** min(attempt - 1, _LARGEST_EXPONENT)
        return min(self.base * factor, self.cap)

    def delay(self, attempt: int, luck: float) -> timedelta:
        """Return the delay with jitter; `luck` is in [0, 1), 0 the shortest."""
        return self.nominal(attempt) * (1 - JITTER + 2 * JITTER * luck)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: the try, its delay after the one before, and when it happens after the first."""

    attempt: int
    delay: timedelta
    elapsed: timedelta


def schedule(backoff: BackOff) -> Sequence[Line]:
    """Return the tries up to the first one that waits as long as every later one, without jitter."""
    lines = [Line(1, timedelta(0), timedelta(0))]
    while len(lines) < backoff.max_attempts:
        delay = backoff.nominal(len(lines))
        elapsed = lines[-1].elapsed + delay
        if elapsed > backoff.max_age:
            break
        lines.append(Line(len(lines) + 1, delay, elapsed))
        if delay == backoff.cap:
            break
    return lines


def table(backoff: BackOff) -> str:
    """Return the schedule as `handbell check` prints it."""
    lines = [f"{'try':>4}  {'after':>8}  {'in all':>8}   (each delay +-{JITTER:.0%}; a longer Retry-After is kept)"]
    lines += [f"{line.attempt:>4}  {_short(line.delay):>8}  {_short(line.elapsed):>8}" for line in schedule(backoff)]
    lines.append(
        f"then every {_short(backoff.cap)}, at most {backoff.max_attempts} tries within {_short(backoff.max_age)}; "
        "after that a dead letter"
    )
    return "\n".join(lines)


def _short(duration: timedelta) -> str:
    seconds = round(duration.total_seconds())
    for size, unit in ((3600, "h"), (60, "m")):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds // 60}m{seconds % 60}s" if seconds > 60 else f"{seconds}s"
