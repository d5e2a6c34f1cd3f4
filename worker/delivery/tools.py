"""What every part of delivery works with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock
from reconciler.routes import Routing, Target
from worker.channels.destination import Destination
from worker.delivery.limits import Limits


@dataclass(frozen=True, slots=True)
class Tools:
    """The database, the time, the configured destinations by name, those that the operator reads, and the bounds.

    `luck` returns a number in [0, 1) for each jitter, `routing` the routes as they are now.
    """

    engine: AsyncEngine
    clock: Clock
    destinations: Mapping[str, Destination]
    operator: Sequence[Target]
    limits: Limits
    luck: Callable[[], float]
    routing: Callable[[], Routing]

    def target(self, name: str) -> Target:
        """Return a destination as the plan sees it."""
        return target_of(self.destinations[name])

    def batch_of(self, name: str) -> int:
        """Return how many deliveries of a destination are claimed at once: what a throttle lets go in a second."""
        throttle = self.destinations[name].throttle
        if throttle is None:
            return self.limits.batch
        return max(1, min(self.limits.batch, timedelta(seconds=1) // throttle))


def target_of(destination: Destination) -> Target:
    """Return a destination as the plan sees it."""
    return Target(destination.name, destination.type, destination.recipients, destination.fallback)
