"""No clock of ours ends a request: only what the runtime commits does, and Cayu 0.15 commits an expiry lazily."""

from datetime import timedelta

from reconciler.sweep import Mode
from tests.contract.cayu.conftest import Case
from tests.support.reconciling import NAMESPACE
from tests.support.sources import SEEN_AT

TEN_YEARS = timedelta(days=3650)


async def test_ten_years_by_our_clock_end_nothing(paused: Case) -> None:
    """The approval `expiring` is past its deadline from the beginning; by our clock all the others are too."""
    for source_time in (SEEN_AT, SEEN_AT + TEN_YEARS):
        await paused.source._clock.advance(source_time - paused.source._clock.now())
        await paused.reconciling.clock.advance(TEN_YEARS)
        await paused.reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
    await paused.reconciling.hint("expiring", "e1")
    await paused.reconciling.refresher.round()

    sessions = await paused.sessions()
    assert sessions["expiring"] == "active"
    assert set(sessions.values()) == {"active"}
