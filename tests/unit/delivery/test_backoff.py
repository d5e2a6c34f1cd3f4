"""The schedule of retries: bounded in every way, and printed as it is."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from worker.delivery.backoff import JITTER, BackOff, schedule, table


@given(st.integers(min_value=1, max_value=10_000), st.floats(min_value=0, max_value=1, exclude_max=True))
def test_delay_is_capped_and_moved_by_a_fifth_at_most(attempt: int, luck: float) -> None:
    backoff = BackOff()

    delay = backoff.delay(attempt, luck)

    nominal = backoff.nominal(attempt)
    assert backoff.base <= nominal <= backoff.cap
    assert nominal * (1 - JITTER) - timedelta(milliseconds=1) <= delay <= nominal * (1 + JITTER)


def test_schedule_stays_under_twelve_tries_in_ten_minutes_even_with_the_shortest_delays() -> None:
    backoff = BackOff()
    elapsed, tries = timedelta(0), 1
    while (elapsed := elapsed + backoff.delay(tries, 0)) <= timedelta(minutes=10):
        tries += 1

    assert tries <= 12


def test_table_says_every_try_up_to_the_ceiling_and_the_bounds() -> None:
    backoff = BackOff()

    printed = table(backoff)

    assert [line.split()[0] for line in printed.splitlines()[1:-1]] == [str(line.attempt) for line in schedule(backoff)]
    assert "   2        2s        2s" in printed
    assert printed.endswith("then every 10m, at most 200 tries within 24h; after that a dead letter")


def test_schedule_ends_at_the_bounds() -> None:
    assert len(schedule(BackOff(max_attempts=3))) == 3
    assert schedule(BackOff(max_age=timedelta(seconds=7)))[-1].elapsed <= timedelta(seconds=7)
