"""Recovery sweeps: bounded calls of the runtime's own event recovery, which nothing else makes in an SDK process.

The runtime gives up on an event after three attempts, and each sweep that meets a dead sink burns one of them. So a
round asks the sink's probe first, starts with a single event, and goes on only if that did not make the sink fail.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from .handbell_sinks import HandbellSink

log = logging.getLogger("handbell.recovery")

MAX_LIMIT = 1000  # the runtime's own bound of one call
_FULL_ROUND_PAUSE = timedelta(seconds=1)  # there is more to do: do not wait for a whole interval


class Outcome(StrEnum):
    """How a round went."""

    IDLE = "idle"  # no retry deadline has passed: the runtime was not asked
    RECOVERED = "recovered"
    INCOMPLETE = "incomplete"  # some events failed again; the runtime set their next deadline
    SKIPPED = "skipped"  # the sink's probe failed: a sweep would only burn attempts
    FAILED = "failed"  # the store or the runtime raised


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did, and what is left in the store after it; the counts are None where it could not be asked."""

    outcome: Outcome
    recovered: int = 0
    is_full: bool = False
    outstanding: int | None = None
    dead_lettered: int | None = None
    observed_at: datetime | None = None


class Recovery:
    """Makes bounded rounds over one application, which has `sink`. Two processes may do so at once."""

    def __init__(self, app: Any, sink: HandbellSink, *, limit: int) -> None:
        assert 1 <= limit <= MAX_LIMIT, "the runtime takes 1 to 1000 events a call"
        self._app = app
        self._sink = sink
        self._limit = limit
        self._last: Outcome | None = None

    async def round(self) -> Round:
        """Recover at most `limit` events whose retry deadline has passed; never raises for a failure."""
        try:
            done = await self._recover()
        except Exception as error:
            # The class alone: a store's own message may hold a secret.
            self._note(Outcome.FAILED, type(error).__name__)
            done = Round(Outcome.FAILED)
        else:
            self._note(done.outcome, f"recovered {done.recovered}, outstanding {done.outstanding}")
        report = getattr(self._sink, "report_recovery", None)
        if report is not None:
            await report(done.outcome.value, recovered=done.recovered, state=_state(done))
        return done

    async def _recover(self) -> Round:
        before = await self._app.get_persisted_event_side_effect_health()
        if not before.claimable_total:
            return _round(Outcome.IDLE, 0, before)
        if not await self._sink.probe():
            return _round(Outcome.SKIPPED, 0, before)
        wanted = min(before.claimable_total, self._limit)
        recovered = len(await self._app.recover_persisted_event_side_effects(limit=1))
        if wanted > 1 and not getattr(self._sink, "is_failing_fast", False):
            recovered += len(await self._app.recover_persisted_event_side_effects(limit=wanted - 1))
        after = await self._app.get_persisted_event_side_effect_health()
        outcome = Outcome.RECOVERED if recovered >= wanted else Outcome.INCOMPLETE
        return _round(outcome, recovered, after, is_full=recovered == self._limit and bool(after.claimable_total))

    def _note(self, outcome: Outcome, detail: str) -> None:
        is_bad = outcome in {Outcome.FAILED, Outcome.SKIPPED, Outcome.INCOMPLETE}
        if outcome is not self._last and (is_bad or self._last is not None):
            log.log(logging.WARNING if is_bad else logging.INFO, "recovery %s (%s)", outcome.value, detail)
        self._last = outcome


def _round(outcome: Outcome, recovered: int, health: Any, *, is_full: bool = False) -> Round:
    return Round(
        outcome,
        recovered,
        is_full,
        outstanding=health.outstanding_total,
        dead_lettered=health.dead_lettered,
        observed_at=health.observed_at,
    )


def _state(done: Round) -> dict[str, str | int]:
    if done.observed_at is None or done.outstanding is None or done.dead_lettered is None:
        return {}
    return {
        "outstanding": done.outstanding,
        "dead_lettered": done.dead_lettered,
        "observed_at": done.observed_at.isoformat(),
    }


async def run_rounds(
    recovery: Recovery,
    stop: asyncio.Event,
    *,
    every: timedelta,
    pause: Callable[[timedelta], Awaitable[None]] | None = None,
) -> None:
    """Make rounds until told to stop, with `every` between them (less after a full one). `pause` is the clock's."""
    sleep = pause or _sleep
    while not stop.is_set():
        done = await recovery.round()
        pausing = asyncio.ensure_future(sleep(min(every, _FULL_ROUND_PAUSE) if done.is_full else every))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({pausing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pausing.cancel()
            stopping.cancel()


async def _sleep(duration: timedelta) -> None:
    await asyncio.sleep(duration.total_seconds())
