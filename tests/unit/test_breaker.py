"""The breaker: one timeout opens it, one probe at a time closes it."""

from sinks.emit.breaker import FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS, Admission, Breaker


class Monotonic:
    """A monotonic clock that moves when told to."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def open_breaker() -> tuple[Breaker, Monotonic]:
    clock = Monotonic()
    breaker = Breaker(clock)
    breaker.record_timeout()
    return breaker, clock


def test_closed_breaker_lets_everything_pass() -> None:
    assert Breaker(Monotonic()).admit() is Admission.PASS


def test_open_breaker_refuses_until_the_delay_is_over() -> None:
    breaker, clock = open_breaker()
    assert breaker.admit() is Admission.REFUSE

    clock.seconds += FIRST_DELAY_SECONDS

    assert breaker.admit() is Admission.PROBE


def test_only_one_caller_probes_at_a_time() -> None:
    breaker, clock = open_breaker()
    clock.seconds += FIRST_DELAY_SECONDS

    admissions = [breaker.admit() for _ in range(10)]

    assert admissions == [Admission.PROBE] + [Admission.REFUSE] * 9


def test_successful_probe_closes() -> None:
    breaker, clock = open_breaker()
    clock.seconds += FIRST_DELAY_SECONDS
    breaker.admit()

    breaker.record_probe_success()

    assert breaker.admit() is Admission.PASS


def test_prober_that_never_reports_is_replaced() -> None:
    breaker, clock = open_breaker()
    clock.seconds += FIRST_DELAY_SECONDS
    breaker.admit()

    clock.seconds += 2 * FIRST_DELAY_SECONDS

    assert breaker.admit() is Admission.PROBE


def test_many_timeouts_at_once_count_as_one() -> None:
    breaker, clock = open_breaker()
    for _ in range(100):
        breaker.record_timeout()

    clock.seconds += FIRST_DELAY_SECONDS

    assert breaker.admit() is Admission.PROBE


def test_delay_grows_while_nothing_is_acknowledged_but_has_a_ceiling() -> None:
    breaker, clock = open_breaker()
    waits = []
    for _ in range(8):
        waited = 0.0
        while breaker.admit() is Admission.REFUSE:
            clock.seconds += 0.5
            waited += 0.5
        breaker.record_probe_success()
        breaker.record_timeout()
        waits.append(waited)

    assert waits[0] == FIRST_DELAY_SECONDS
    assert waits == sorted(waits)
    assert waits[-1] == MAX_DELAY_SECONDS


def test_acknowledgement_starts_from_the_first_delay_again() -> None:
    breaker, clock = open_breaker()
    breaker.record_probe_success()
    breaker.record_timeout()
    breaker.record_success()
    breaker.record_timeout()

    clock.seconds += FIRST_DELAY_SECONDS

    assert breaker.admit() is Admission.PROBE
