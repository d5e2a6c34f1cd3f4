"""The numbers that delivery works with, in one place; the wiring makes them from the settings."""

from dataclasses import dataclass, field
from datetime import timedelta

from worker.delivery.backoff import BackOff


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds delivery.

    `batch` deliveries of a destination are claimed at once and sent at most `at_once` at a time. A `lease` is
    renewed while its holder works. `send_bound` is above every channel's own timeout. `look_up_for` is how long a
    provider is asked about a message that it may have. `permanent_limit` consecutive permanent failures break a
    destination, which is then probed every `probe_every`; `dead_letter_limit` dead letters within
    `dead_letter_window` pause it. A source that
    does not confirm is asked again after half the time it has been silent, within the two postpone bounds.
    """

    batch: int = 50
    at_once: int = 16
    lease: timedelta = timedelta(seconds=30)
    send_bound: timedelta = timedelta(seconds=60)
    idle: timedelta = timedelta(seconds=5)
    drain: timedelta = timedelta(seconds=10)
    backoff: BackOff = field(default_factory=BackOff)
    look_up_for: timedelta = timedelta(hours=1)
    max_unexpected: int = 5
    permanent_limit: int = 3
    dead_letter_limit: int = 100
    dead_letter_window: timedelta = timedelta(hours=1)
    probe_every: timedelta = timedelta(minutes=5)
    postpone_least: timedelta = timedelta(seconds=5)
    postpone_most: timedelta = timedelta(minutes=5)
    wait_for_opening: timedelta = timedelta(seconds=1)
    orphan_after: timedelta = timedelta(hours=1)
