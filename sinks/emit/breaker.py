"""Whether to try at all: after a timeout, fail fast until a probe succeeds.

The runtime awaits every emit inside the agent's run, so a dead consumer must cost one timeout, not one an event.
"""

import threading
import time
from collections.abc import Callable
from enum import StrEnum

FIRST_DELAY_SECONDS = 1.0
MAX_DELAY_SECONDS = 15.0


class Admission(StrEnum):
    """What the caller may do now."""

    PASS = "pass"  # noqa: S105  # it is no password
    PROBE = "probe"
    REFUSE = "refuse"


class Breaker:
    """Opens on a timeout, closes on a successful probe; one caller at a time gets to probe.

    The delay before a probe doubles, up to `MAX_DELAY_SECONDS`, for as long as nothing was acknowledged in between:
    a probe may succeed where the work does not. Safe in several threads. `now` is a monotonic clock in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._is_open = False
        self._probe_at = 0.0
        self._delay_seconds = FIRST_DELAY_SECONDS

    @property
    def is_open(self) -> bool:
        """Say whether callers are refused."""
        return self._is_open

    def admit(self) -> Admission:
        """Decide for one caller; whoever is told to probe has the only probe until the delay is over again."""
        with self._lock:
            if not self._is_open:
                return Admission.PASS
            if self._now() < self._probe_at:
                return Admission.REFUSE
            self._postpone()
            return Admission.PROBE

    def record_timeout(self) -> None:
        """Open; of many callers that time out together only the first counts."""
        with self._lock:
            if not self._is_open:
                self._is_open = True
                self._postpone()

    def record_probe_success(self) -> None:
        """Close, but keep the longer delay until something is acknowledged."""
        with self._lock:
            self._is_open = False

    def record_success(self) -> None:
        """Close, and start from the first delay next time."""
        with self._lock:
            self._is_open = False
            self._delay_seconds = FIRST_DELAY_SECONDS

    def _postpone(self) -> None:
        self._probe_at = self._now() + self._delay_seconds
        self._delay_seconds = min(self._delay_seconds * 2, MAX_DELAY_SECONDS)
