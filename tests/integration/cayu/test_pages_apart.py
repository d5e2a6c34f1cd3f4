"""A process that delivers reads large scans in a child: its loop stays free, and nothing is left behind."""

import asyncio
import os
import signal
import sys
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from config.loading import load_configuration
from reconciler.sources.apart import ApartSource
from reconciler.sources.registry import READ_HERE_AT_MOST
from reconciler.sweep import Mode, Sweeper
from tests.support.cayu_clones import clone_session
from tests.support.cayu_stores import CayuStore
from tests.support.loop_delay import LoopDelay
from tests.support.sources import KnownIds
from worker.app import Core, open_core
from worker.scripted.runtime import close_store, make_app, open_store, pause

ROWS = 300
ORIGINAL = "the-original-session"

# Idle, it is less than a tenth of it; a page in this process would hold the loop for several.
LONGEST_DELAY_SECONDS = 1.5


@pytest.fixture(scope="session")
def large_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store with many pending requests."""
    path = tmp_path_factory.mktemp("large") / "cayu.db"

    async def fill() -> None:
        store = open_store(str(path))
        await pause(make_app(store), "user_input", ORIGINAL)
        await close_store(store)
        await clone_session(str(path), ORIGINAL, ROWS - 1, at=datetime.now(UTC) - timedelta(hours=1))

    asyncio.run(fill())
    return path


async def core_of(store: Path | str, database_url: str, folder: Path, stack: AsyncExitStack) -> Core:
    """Open what a worker stands on, with one source."""
    file = folder / "handbell.toml"
    source = f'[[sources]]\nnamespace = "prod"\ntype = "cayu"\nstore = "{store}"\n'
    file.write_text(f'[database]\nurl = "{database_url}"\n\n{source}')
    configuration = load_configuration(file, environ={})
    return await stack.enter_async_context(open_core(configuration, reads_pages_apart=True))


def sweeper(core: Core) -> Sweeper:
    return Sweeper(core.engine, core.clock, core.book, core.namespaces, core.notifications)


def child() -> psutil.Process | None:
    children = psutil.Process().children()
    return next((child for child in children if "reconciler.sources.apart_child" in " ".join(child.cmdline())), None)


async def test_loop_stays_free_while_many_rows_are_scanned_and_no_child_is_left(
    large_store: Path, migrated_sqlite_url: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        core = await core_of(large_store, migrated_sqlite_url, tmp_path, stack)
        await core.book.recheck("prod")
        source = core.book.believed("prod")
        assert isinstance(source, ApartSource)
        first = await source.page(None, limit=200, known=KnownIds())
        await source.page(None, limit=1, known=KnownIds())
        theirs = child()
        assert theirs is not None
        begun_cpu, their_begun_cpu = time.process_time(), sum(theirs.cpu_times()[:2])

        async with LoopDelay() as delay:
            passed = await sweeper(core).sweep("prod", Mode.FULL)

        cpu, their_cpu = time.process_time() - begun_cpu, sum(theirs.cpu_times()[:2]) - their_begun_cpu

    assert len(first.active) == READ_HERE_AT_MOST
    assert passed is not None
    assert (passed.rows_seen, passed.is_complete) == (ROWS, True)
    assert delay.longest_seconds < LONGEST_DELAY_SECONDS
    assert cpu < their_cpu
    assert not theirs.is_running()


async def test_small_store_is_read_without_a_child(
    cayu_store: CayuStore, migrated_sqlite_url: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        core = await core_of(cayu_store.url, migrated_sqlite_url, tmp_path, stack)

        passed = await sweeper(core).sweep("prod", Mode.FULL)

        assert passed is not None
        assert passed.is_complete
        assert child() is None


async def test_pass_that_is_cancelled_leaves_no_child(
    large_store: Path, migrated_sqlite_url: str, tmp_path: Path
) -> None:
    """As at a shutdown in the middle of a scan."""
    async with AsyncExitStack() as stack:
        core = await core_of(large_store, migrated_sqlite_url, tmp_path, stack)
        sweeping = asyncio.create_task(sweeper(core).sweep("prod", Mode.FULL))
        while child() is None:
            await asyncio.sleep(0.01)
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)

    assert child() is None


PARENT = """
import asyncio, sys
from pathlib import Path
from config.clock import SystemClock
from reconciler.sources.apart import ApartSource
from reconciler.sources.apart_child import Recipe
from reconciler.sources.cayu import Options, build
from reconciler.sources.services import SourceServices
from tests.support.sources import KnownIds

async def main():
    options = Options.model_validate({"store": sys.argv[1]})
    inner = build("prod", options, SourceServices(SystemClock(), Path("/")))
    source = ApartSource(inner, Recipe("reconciler.sources.cayu", "prod", options, Path("/")), SystemClock())
    await source.page(None, limit=1, known=KnownIds())
    print(source._child.process.pid, flush=True)
    await asyncio.Event().wait()

if __name__ == "__main__":
    asyncio.run(main())
"""


async def test_child_ends_with_a_parent_that_was_killed(cayu_store: CayuStore, tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    root = str(Path(__file__).parents[3])
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        cayu_store.url,
        env={**os.environ, "PYTHONPATH": root},
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    orphan = psutil.Process(int(await parent.stdout.readline()))

    parent.send_signal(signal.SIGKILL)
    await parent.wait()

    _, left = await asyncio.to_thread(psutil.wait_procs, [orphan], 20)
    assert left == []
