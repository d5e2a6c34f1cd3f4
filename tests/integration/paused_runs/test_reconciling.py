"""Paused runs go the same way as every other request: told once, settled once, and never by absence."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock
from reconciler.reasons import Door
from reconciler.sources.pauses import PausesSource, pause_attention_id
from reconciler.sweep import Mode, Pass
from tests.support.paging_source import BEGINNING
from tests.support.pause_ledgers import Ledger
from tests.support.reconciling import NAMESPACE, Reconciling

ID = pause_attention_id(NAMESPACE, "a")
EXPIRES = BEGINNING.timestamp() + 600


class Paused:
    """A reconciler over a ledger in which one run waits for ten minutes."""

    def __init__(self, engine: AsyncEngine, ledger: Ledger) -> None:
        source: Any = _Later(ledger)
        self.ledger = ledger
        self.reconciling = Reconciling(engine, source=source)
        source.clock = self.reconciling.clock

    async def sweep(self, *, after: timedelta = timedelta(0)) -> Pass:
        """Let time pass, then read everything."""
        await self.reconciling.clock.advance(after)
        await self.reconciling.book.recheck(NAMESPACE)
        done = await self.reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
        assert done is not None
        return done

    async def state(self) -> str:
        return (await self.reconciling.states())[ID]

    async def purposes(self) -> list[str]:
        return sorted({purpose for _, _, purpose, _ in await self.reconciling.deliveries()})


class _Later:
    """The source, built once the reconciler has made its clock."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._source: PausesSource | None = None
        self.clock: FrozenClock

    def __getattr__(self, name: str) -> Any:
        if self._source is None:
            self._source = self._ledger.source(self.clock, namespace=NAMESPACE)
        return getattr(self._source, name)


@pytest.fixture
async def paused(engine: AsyncEngine, sqlite_pause_ledger: Ledger) -> AsyncIterator[Paused]:
    await sqlite_pause_ledger.issue("a", issued_at=BEGINNING.timestamp() - 1, expires_at=EXPIRES)
    made = Paused(engine, sqlite_pause_ledger)
    yield made
    await made.reconciling.book.close()


async def test_paused_run_is_told_once_and_settled_by_its_redemption(paused: Paused) -> None:
    first, second = await paused.sweep(), await paused.sweep()
    state, opened = await paused.state(), await paused.purposes()
    await paused.ledger.consume("a")
    await paused.sweep()

    assert (first.is_complete, second.rows_changed) == (True, 0)
    assert (state, opened) == ("active", ["open"])
    assert await paused.state() == "resolved"
    assert [to for _, to, _ in await paused.reconciling.history()] == ["active", "resolved"]


async def test_window_that_closed_is_over_only_after_the_grace(paused: Paused) -> None:
    await paused.sweep()
    await paused.sweep(after=timedelta(seconds=630))
    late = await paused.state()
    await paused.sweep(after=timedelta(seconds=90))

    assert (late, await paused.state()) == ("unavailable", "expired")


async def test_claim_that_commits_just_after_expiry_resolves(paused: Paused) -> None:
    await paused.sweep()
    await paused.sweep(after=timedelta(seconds=630))
    await paused.ledger.consume("a", consumed_at=EXPIRES)
    await paused.sweep(after=timedelta(hours=1))

    assert [to for _, to, _ in await paused.reconciling.history()] == ["active", "unavailable", "resolved"]


async def test_ledger_that_fails_or_forgets_settles_nothing(paused: Paused) -> None:
    await paused.sweep()
    await paused.ledger.execute("DELETE FROM {issued}")
    await paused.sweep(after=timedelta(days=1))
    forgotten = await paused.state()
    await paused.ledger.break_down()
    broken = await paused.reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert broken is not None
    assert (forgotten, broken.is_complete, await paused.state()) == ("unavailable", False, "unavailable")


async def test_redemption_seen_after_the_expiry_is_a_recorded_conflict_and_reopens_nothing(paused: Paused) -> None:
    await paused.sweep()
    await paused.sweep(after=timedelta(hours=1))
    await paused.ledger.consume("a", consumed_at=EXPIRES)
    source: Any = paused.reconciling.source
    seen = await source.observe(source.reference("a", "ask_user"))
    applied = await paused.reconciling.notifications.apply(NAMESPACE, [seen], door=Door.VERIFY)

    assert (await paused.state(), applied.conflicts) == ("expired", 1)
