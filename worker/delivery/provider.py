"""Asks a channel to send, or about an earlier try, and turns whatever happens into an outcome.

A channel reports its outcome itself; an exception out of it is a bug. It is recorded as `unexpected`, with the places
it came through but not its text, which may hold a URL with a secret.
"""

import asyncio
import traceback
from collections.abc import Callable, Sequence

import structlog

from config.clock import Clock
from reconciler.routes import Routing
from worker.channels.destination import Destination
from worker.channels.outcomes import FailureReason, Outcome, Temporary, Unknown
from worker.channels.protocol import UnknownPolicy
from worker.delivery.gate import Go
from worker.delivery.groups import Unit
from worker.delivery.limits import Limits
from worker.delivery.messages import Links, context_for, message_for
from worker.delivery.rows import Claimed
from worker.delivery.transitions import Result

log = structlog.get_logger()

# After an exception these may have the message; the others are tried again, boundedly.
_MAY_HAVE_IT = frozenset({UnknownPolicy.LOOK_UP, UnknownPolicy.RESEND_ONCE})


class Provider:
    """One destination's channel as the engine uses it: never raises but when cancelled."""

    def __init__(
        self, destination: Destination, links: Links, limits: Limits, clock: Clock, routing: Callable[[], Routing]
    ) -> None:
        self._destination = destination
        self._links = links
        self._limits = limits
        self._clock = clock
        self._routing = routing

    async def send(self, unit: Unit) -> list[Result]:
        """Make one try; return its result for each of those that are told together."""
        row, started_at = unit.lead, self._clock.now()
        outcome: Outcome
        try:
            message = message_for(unit, self._links, self._routing())
            async with asyncio.timeout(self._limits.send_bound.total_seconds()):
                outcome = await self._destination.channel.send(message, context_for(row, started_at))
        except TimeoutError:
            outcome = Unknown(FailureReason.TIMED_OUT)
        except Exception as error:  # whatever a channel raises is contained here: the rest of the batch goes on
            self._log("delivery.failed_unexpectedly", row, error)
            may_have_it = self._destination.channel.on_unknown in _MAY_HAVE_IT
            outcome = Unknown(FailureReason.UNEXPECTED) if may_have_it else Temporary(FailureReason.UNEXPECTED)
        took = self._clock.now() - started_at
        return [Result(go.row, outcome, started_at, took, go.observation) for go in unit.members]

    async def find(self, rows: Sequence[Claimed]) -> list[Result]:
        """Ask about the earlier try of what was told together, the lead first."""
        row, started_at = rows[0], self._clock.now()
        outcome: Outcome | None
        try:
            message = message_for(Unit([Go(one) for one in rows]), self._links, self._routing())
            async with asyncio.timeout(self._limits.send_bound.total_seconds()):
                outcome = await self._destination.channel.find(message, context_for(row, started_at))
        except TimeoutError:
            outcome = Temporary(FailureReason.TIMED_OUT)
        except Exception as error:  # as above
            self._log("delivery.look_up_failed_unexpectedly", row, error)
            outcome = Temporary(FailureReason.UNEXPECTED)
        took = self._clock.now() - started_at
        return [Result(one, outcome, started_at, took, is_look_up=True) for one in rows]

    def _log(self, event: str, row: Claimed, error: Exception) -> None:
        places = [
            f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
        ]
        log.error(
            event, delivery_id=row.id, channel=self._destination.type, error=type(error).__name__, traceback=places
        )
