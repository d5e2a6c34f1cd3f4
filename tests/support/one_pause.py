"""One Cayu store at three moments: nothing waits, a question waits, it is answered. Made once, copied for each test.

All three are the same store (the same identity), so putting the next one in place is what the agent's work looks
like from outside; the events that the runtime gave meanwhile are sent by hand.
"""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from cayu.events import Event

from sinks.emit.errors import HintNotDurable
from sinks.emit.redis_stream import RedisStreamSink
from worker.scripted.runtime import close_store, make_app, open_store, pause
from worker.scripted.settling import current_action, settle

SESSION = "ask"
NAMESPACE = "prod"


@dataclass(frozen=True)
class Moments:
    """The files of the three moments, and the events that lead to the second and the third."""

    nothing: Path
    waiting: Path
    answered: Path
    opening: Sequence[Event]
    closing: Sequence[Event]


@dataclass(frozen=True)
class Agent:
    """An agent as Handbell sees it: a store that changes, and hints."""

    moments: Moments
    store: Path

    def begin(self) -> None:
        """Have nothing wait."""
        self._put(self.moments.nothing)

    def ask(self) -> None:
        """Let the question wait, without a hint."""
        self._put(self.moments.waiting)

    def be_answered(self) -> None:
        """Let the question be answered, without a hint."""
        self._put(self.moments.answered)

    def _put(self, moment: Path) -> None:
        copy = self.store.with_suffix(".new")
        shutil.copy(moment, copy)
        for suffix in ("-wal", "-shm"):
            self.store.with_name(self.store.name + suffix).unlink(missing_ok=True)
        copy.replace(self.store)


async def emit(url: str, events: Sequence[Event], *, patience_seconds: float = 60.0) -> None:
    """Send the events' hints as the runtime does: again until each is acknowledged."""
    sink = RedisStreamSink(url, namespace=NAMESPACE, timeout=2.0)
    try:
        async with asyncio.timeout(patience_seconds):
            for event in events:
                while True:
                    try:
                        await sink.emit(event)
                    except HintNotDurable:
                        await asyncio.sleep(0.05)
                    else:
                        break
    finally:
        await sink.aclose()


@contextlib.asynccontextmanager
async def emitting(url: str, events: Sequence[Event]) -> AsyncIterator[None]:
    """Send the events while the block runs; at its end all are acknowledged."""
    task = asyncio.create_task(emit(url, events))
    try:
        yield
        await task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture(scope="session")
def moments(tmp_path_factory: pytest.TempPathFactory) -> Moments:
    """Make the three files."""
    folder = tmp_path_factory.mktemp("moments")
    return asyncio.run(_make(folder))


@pytest.fixture
def agent(moments: Moments, tmp_path: Path) -> Agent:
    """Give an agent for whom nothing waits yet."""
    folder = tmp_path / "agent"
    folder.mkdir()
    agent = Agent(moments, folder / "cayu.db")
    agent.begin()
    return agent


async def _make(folder: Path) -> Moments:
    living = folder / "living.db"
    store = open_store(str(living))
    await close_store(store)
    nothing = Path(shutil.copy(living, folder / "nothing.db"))
    store = open_store(str(living))
    opening = await pause(make_app(store), "user_input", SESSION)
    await close_store(store)
    waiting = Path(shutil.copy(living, folder / "waiting.db"))
    store = open_store(str(living))
    closing = await settle(make_app(store), await current_action(store, SESSION), "answer")
    await close_store(store)
    return Moments(nothing, waiting, living, opening, closing)
