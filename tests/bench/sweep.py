"""What a pass over many pending requests costs beside the bare query: `python -m tests.bench.sweep [--rows 1000]`.

One SQLite store of Cayu with copies of one real pause. In one run, each page by turns, so that a busy machine slows
both: the bare loop over `query_pending_actions`, and Handbell's full pass with nothing changed. Then Cayu's own
`reconcile_once` with a receiver that costs nothing, a head pass after five changes, and the full pass with its pages
read apart, with the longest time that this process' event loop was held up meanwhile.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cayu.human_attention_handoff import HumanAttentionHandoff
from cayu.sessions import PendingActionQuery

from config.clock import Clock, SystemClock
from config.migrate import migrate
from reconciler.namespaces import Namespaces
from reconciler.notifications import Notifications, Routing
from reconciler.source_book import Entry, SourceBook
from reconciler.sources.apart import ApartSource
from reconciler.sources.apart_child import Recipe
from reconciler.sources.cayu import Options
from reconciler.sources.protocol import Known, Page
from reconciler.sweep import FULL_PAGE_LIMIT, Mode, Pass, Sweeper
from tests.support.cayu_clones import clone_session, touch_sessions
from tests.support.databases import engine_for
from tests.support.loop_delay import LoopDelay
from tests.support.reconciling import NAMESPACE, TARGETS
from tests.support.small_pages import SmallPages
from tests.support.sources import KnownIds, cayu_source
from worker.scripted.runtime import close_store, make_app, open_store, pause

ORIGINAL = "the-original-session"
CHANGED = 5
LIMIT = 1.15


@dataclass
class Spent:
    """Wall and processor seconds of this process."""

    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0

    @asynccontextmanager
    async def measured(self) -> AsyncIterator[None]:
        """Add what the block takes."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall_seconds += time.perf_counter() - wall
        self.cpu_seconds += time.process_time() - cpu

    def less(self, other: "Spent") -> "Spent":
        """Return what is left without `other`, which was measured inside."""
        return Spent(self.wall_seconds - other.wall_seconds, self.cpu_seconds - other.cpu_seconds)


@dataclass
class Interleaved(SmallPages):
    """The source, and before or after each of its pages (by turns) the bare query of the same page."""

    inner: Any
    store: Any
    bare: Spent = field(default_factory=Spent)

    def __post_init__(self) -> None:
        super().__init__(self.inner, FULL_PAGE_LIMIT)

    async def page(self, cursor: str | None, *, limit: int, known: Known) -> Page:
        """Return the source's page; the bare query's time is kept apart."""
        is_first = len(self.asked) % 2 == 0
        if is_first:
            await self._query(cursor, limit)
        page = await super().page(cursor, limit=limit, known=known)
        if not is_first:
            await self._query(cursor, limit)
        return page

    async def _query(self, cursor: str | None, limit: int) -> None:
        async with self.bare.measured():
            await self.store.query_pending_actions(PendingActionQuery(limit=limit, cursor=cursor))


class FreeReceiver:
    """Takes everything at once and costs nothing; holds open, as every receiver does, what was last active."""

    def __init__(self) -> None:
        self._open: dict[str, Any] = {}

    async def state(self) -> dict[str, Any]:
        """Begin from the start."""
        return {"scan_cursor": None}

    async def observations(self, items: Sequence[Mapping[str, Any]], **_scopes: Any) -> dict[str, Any]:
        """Remember what is active."""
        self._open |= {item["reference"]["attention_id"]: item["reference"] for item in items}
        return {"verify": []}

    async def references(self, *, after: str | None, limit: int, **_of: Any) -> dict[str, Any]:
        """Return a page of what is open."""
        behind = [attention_id for attention_id in sorted(self._open) if after is None or attention_id > after]
        page = behind[:limit]
        return {
            "items": [self._open[attention_id] for attention_id in page],
            "next_after": page[-1] if len(behind) > limit else None,
        }

    async def reconciliation(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Give the report back."""
        return dict(report)


async def main(rows: int) -> None:
    """Make the store, measure, print."""
    with tempfile.TemporaryDirectory(prefix="handbell-bench-") as name:
        folder = Path(name)
        path = str(folder / "cayu.db")
        store = open_store(path)
        await pause(make_app(store), "user_input", ORIGINAL, labels={"requester": "alice"})
        await close_store(store)
        await clone_session(path, ORIGINAL, rows - 1, at=datetime.now(UTC) - timedelta(hours=1))
        engine = engine_for(f"sqlite:///{folder / 'handbell.db'}")
        await migrate(engine)
        try:
            await _measure(path, engine, rows)
        finally:
            await engine.dispose()


async def _measure(path: str, engine: Any, rows: int) -> None:
    plain = cayu_source(path, clock=SystemClock())
    first = await _pass(engine, plain, Mode.FULL)
    print(f"{rows} pending requests; the first pass enrolled {first.rows_changed}")

    interleaved = Interleaved(plain, (await plain._opened()).store)
    whole = Spent()
    async with whole.measured():
        again = await _pass(engine, interleaved, Mode.FULL)
    assert (again.is_complete, again.rows_seen, again.rows_changed) == (True, rows, 0)
    bare = interleaved.bare
    _print("bare loop over query_pending_actions", bare, bare)
    _print(f"full pass, nothing changed (target {LIMIT})", whole.less(bare), bare)

    await _head(path, engine, plain)
    await plain.close()
    await _apart(path, engine, rows, bare)
    await _theirs(path, bare)


async def _head(path: str, engine: Any, source: Any) -> None:
    await touch_sessions(path, [f"clone-{number:07d}" for number in range(CHANGED)], at=datetime.now(UTC))
    spent = Spent()
    async with spent.measured():
        passed = await _pass(engine, source, Mode.HEAD)
    print(f"head pass, {CHANGED} changed: {passed.pages} page(s) of 25, {spent.wall_seconds:.2f} s")
    assert passed.pages == 1


async def _apart(path: str, engine: Any, rows: int, bare: Spent) -> None:
    clock = SystemClock()
    recipe = Recipe("reconciler.sources.cayu", NAMESPACE, Options.model_validate({"store": path}), Path("/"))
    apart = ApartSource(cayu_source(path, clock=clock), recipe, clock)
    try:
        await apart.page(None, limit=1, known=KnownIds())  # the child imports cayu for seconds, once
        spent = Spent()
        async with LoopDelay() as delay, spent.measured():
            passed = await _pass(engine, apart, Mode.FULL)
    finally:
        await apart.close()
    assert passed.rows_seen == rows
    _print("full pass, pages read apart (wall; cpu of this process)", spent, bare)
    print(f"  its loop was held up {delay.longest_seconds * 1000:.0f} ms at most")


async def _theirs(path: str, bare: Spent) -> None:
    store = open_store(path, read_only=True)
    handoff = HumanAttentionHandoff(FreeReceiver(), max_pages=1000)  # type: ignore[arg-type]
    make_app(store, handoff=handoff, agents=False)
    spent = Spent()
    async with spent.measured():
        await handoff.reconcile_once()
    await close_store(store)
    _print("Cayu's own reconcile_once", spent, bare)


async def _pass(engine: Any, source: Any, mode: Mode) -> Pass:
    clock: Clock = SystemClock()
    namespaces = Namespaces(engine, clock)
    entry = Entry(NAMESPACE, "cayu", source, timedelta(minutes=5), timedelta(seconds=15))
    book = SourceBook({NAMESPACE: entry}, namespaces)
    notifications = Notifications(engine, clock, lambda: Routing((), TARGETS))
    sweeper = Sweeper(engine, clock, book, namespaces, notifications, page_budget=1000)
    passed = await sweeper.sweep(NAMESPACE, mode)
    assert passed is not None
    return passed


def _print(what: str, spent: Spent, bare: Spent) -> None:
    print(
        f"{what}: {spent.wall_seconds:.2f} s wall ({spent.wall_seconds / bare.wall_seconds:.2f} times),"
        f" {spent.cpu_seconds:.2f} s cpu ({spent.cpu_seconds / bare.cpu_seconds:.2f} times)"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000, metavar="N", help="pending requests (1000)")
    asyncio.run(main(parser.parse_args().rows))
