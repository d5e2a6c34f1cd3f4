"""How many requests a namespace may send: a bucket that fills with time and empties by one a request."""

from config.clock import Clock


class RateLimit:
    """Allows `per_second` requests on average and `burst` of them at once; for one process, in memory."""

    def __init__(self, clock: Clock, *, per_second: float, burst: int) -> None:
        assert per_second > 0, "a limit of nothing would refuse everything for ever"
        assert burst >= 1, "a bucket holds at least one request"
        self._clock = clock
        self._per_second = per_second
        self._burst = burst
        self._level = float(burst)
        self._filled_at = clock.now()

    def allow(self) -> bool:
        """Take one request from the bucket; False where it is empty."""
        now = self._clock.now()
        gained = max(0.0, (now - self._filled_at).total_seconds()) * self._per_second
        self._level = min(float(self._burst), self._level + gained)
        self._filled_at = now
        if self._level < 1:
            return False
        self._level -= 1
        return True
