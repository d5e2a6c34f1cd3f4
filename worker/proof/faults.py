"""The faults that the proof injects on purpose: a producer that dies, an acknowledgement that is lost, a consumer
that dies. A death is `os._exit`: nothing is rolled back, closed or released, as in a real one.
"""

import os
from collections.abc import Sequence

from cayu.events import Event
from cayu.observability import EventSink

from reconciler.notifications import Applied, Notifications
from reconciler.reasons import Door
from reconciler.references import Observation
from sinks.emit.wakeup import WAKE_UP_EVENTS

CRASHED_BEFORE_DELIVERY = 17
CRASHED_AFTER_ACCEPT = 18

# The event that the runtime commits together with the pause: from then on the request can be queried.
PAUSE_BOUNDARY = "session.interrupted"


class CrashingSink(EventSink):
    """Ends the process where the pause is committed and its event not yet delivered; the claim stays leased."""

    def __init__(self, inner: EventSink) -> None:
        self._inner = inner

    async def emit(self, event: Event) -> None:
        """Deliver what comes before the pause, and die at the pause."""
        if str(event.type) == PAUSE_BOUNDARY:
            os._exit(CRASHED_BEFORE_DELIVERY)
        await self._inner.emit(event)


class ForgetfulSink(EventSink):
    """Commits each hint and then loses its acknowledgement: the runtime will send it again."""

    def __init__(self, inner: EventSink) -> None:
        self._inner = inner

    async def emit(self, event: Event) -> None:
        """Commit the hint and fail all the same."""
        await self._inner.emit(event)
        if str(event.type) in WAKE_UP_EVENTS:
            raise ConnectionError("the acknowledgement was lost")


class CrashingNotifications(Notifications):
    """Ends the process after a notification is inserted, before anything is acknowledged or recorded besides."""

    async def apply(self, namespace: str, observations: Sequence[Observation], *, door: Door) -> Applied:
        """Apply as always; die where that enrolled a request."""
        applied = await super().apply(namespace, observations, door=door)
        if applied.new:
            os._exit(CRASHED_AFTER_ACCEPT)
        return applied
