"""The loop that refreshes sessions whenever hints were committed: woken by the bell, never polling."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import structlog

from config.clock import Clock
from reconciler.refresh import Refresher
from worker.bells import Bell

log = structlog.get_logger()

# Even without a bell (a process that died after its commit) unprocessed hints are looked for this often.
LONGEST_WAIT = timedelta(seconds=30)

_AFTER_A_FAILURE = timedelta(seconds=2)


async def refresh_forever(
    refresher: Refresher,
    bell: Bell,
    clock: Clock,
    stop: asyncio.Event,
    *,
    on_round: Callable[[str, timedelta], None] = lambda _outcome, _took: None,
) -> None:
    """Run rounds until `stop`; a failed round is logged and tried again, nothing is lost by it.

    `on_round` is told how a round that had work ended (complete, incomplete, failed) and how long it took.
    """
    while not stop.is_set():
        began_at = clock.now()
        try:
            refreshed = await refresher.round()
        except Exception:
            log.exception("refresh.round_failed")
            on_round("failed", clock.now() - began_at)
            await bell.wait(_AFTER_A_FAILURE)
            continue
        if refreshed.sessions:
            on_round("incomplete" if refreshed.incomplete else "complete", clock.now() - began_at)
            continue
        pause = LONGEST_WAIT
        if refreshed.retry_at is not None:
            pause = min(pause, max(refreshed.retry_at - clock.now(), timedelta(0)))
        await bell.wait(pause)
