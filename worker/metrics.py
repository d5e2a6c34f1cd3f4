"""Every metric there is: its name, what it means, its labels. Labels hold words of closed sets, never an identity.

Counters and histograms count what this process did. Gauges are computed from SQL at the scrape (worker/gauges.py), so
every process of a deployment shows the same ones. The dashboard and the alert rules in deploy/ use exactly these names;
a test compares them.
"""

from dataclasses import dataclass, field
from datetime import timedelta

from prometheus_client import CollectorRegistry, Counter, Histogram

_FAST_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SLOW_BUCKETS = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


@dataclass(frozen=True, slots=True)
class Gauge:
    """A gauge that is computed at the scrape."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()


DATABASE_UP = Gauge("handbell_database_up", "1 where the gauges could be read from the database, else 0.")
INBOX_UNPROCESSED = Gauge("handbell_inbox_unprocessed", "Hints whose session was not refreshed since.")
INBOX_LAG = Gauge("handbell_inbox_lag_seconds", "Age of the oldest hint that waits for its refresh; 0 where none does.")
INBOX_DEAD = Gauge("handbell_inbox_dead_letters", "Stream entries that could not be read as a hint.")
NOTIFICATIONS = Gauge("handbell_notifications", "Requests for a person, by state.", ("state",))
OLDEST_OPEN = Gauge(
    "handbell_oldest_open_request_seconds", "Age of the oldest request that is not over; 0 without one."
)
DELIVERIES = Gauge("handbell_deliveries", "Deliveries, by status and reason.", ("status", "reason"))
DEAD_LETTERS = Gauge("handbell_dead_letters", "Deliveries that are not tried again without a person.")
OLDEST_DUE = Gauge(
    "handbell_oldest_due_delivery_seconds", "How long the delivery that is due longest has been due; 0 without one."
)
SWEEP_OVERDUE = Gauge(
    "handbell_sweep_overdue_seconds", "How long the most overdue full pass of a namespace has been due; 0 without one."
)
BROKEN_DESTINATIONS = Gauge("handbell_broken_destinations", "Destinations that are broken or paused.")
OPEN_NOTICES = Gauge("handbell_open_notices", "Notices to the operator that are not closed.")
HANDOFF_REPORT_AGE = Gauge(
    "handbell_handoff_report_age_seconds",
    "Age of the newest repair report of the handoff sender that is silent longest; 0 where none ever reported.",
)

GAUGES = (
    DATABASE_UP,
    INBOX_UNPROCESSED,
    INBOX_LAG,
    INBOX_DEAD,
    NOTIFICATIONS,
    OLDEST_OPEN,
    DELIVERIES,
    DEAD_LETTERS,
    OLDEST_DUE,
    SWEEP_OVERDUE,
    BROKEN_DESTINATIONS,
    OPEN_NOTICES,
    HANDOFF_REPORT_AGE,
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a gauge, with the values of its labels in their order."""

    gauge: Gauge
    value: float
    labels: tuple[str, ...] = field(default=())


class Metrics:
    """What this process did, counted. One per process, made by the wiring; the methods never fail."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._refresh = Histogram(
            "handbell_refresh_seconds",
            "How long one round of refreshes that had work took, by outcome (complete, incomplete, failed).",
            ("outcome",),
            buckets=_FAST_BUCKETS,
            registry=self.registry,
        )
        self._sweep = Histogram(
            "handbell_sweep_seconds",
            "How long one pass over a source took, by mode (full, head) and outcome (complete, incomplete).",
            ("mode", "outcome"),
            buckets=_SLOW_BUCKETS,
            registry=self.registry,
        )
        self._attempts = Counter(
            "handbell_delivery_attempts_total",
            "Tries of deliveries, by channel type, outcome (of AttemptOutcome) and reason (empty where it was sent).",
            ("channel", "outcome", "reason"),
            registry=self.registry,
        )
        self._attempt_seconds = Histogram(
            "handbell_delivery_attempt_seconds",
            "How long a provider took to answer one try, by channel type.",
            ("channel",),
            buckets=_FAST_BUCKETS,
            registry=self.registry,
        )
        self._handoff = Counter(
            "handbell_handoff_requests_total",
            "Requests of handoff senders, by call and HTTP status.",
            ("call", "status"),
            registry=self.registry,
        )

    def refreshed(self, outcome: str, took: timedelta) -> None:
        """Count one round of refreshes."""
        self._refresh.labels(outcome).observe(took.total_seconds())

    def swept(self, mode: str, outcome: str, took: timedelta) -> None:
        """Count one pass over a source."""
        self._sweep.labels(mode, outcome).observe(took.total_seconds())

    def attempted(self, channel: str, outcome: str, reason: str, took: timedelta) -> None:
        """Count one try of a delivery; `reason` is empty where it was sent."""
        self._attempts.labels(channel, outcome, reason).inc()
        self._attempt_seconds.labels(channel).observe(took.total_seconds())

    def handed_off(self, call: str, status: int) -> None:
        """Count one request of a handoff sender."""
        self._handoff.labels(call, str(status)).inc()
