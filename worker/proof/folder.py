"""The folder of a proof: the runtime's store and Handbell's database, all that is left between two commands."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock, SystemClock
from config.database import create_engine, database_url
from config.errors import ConfigError
from config.migrate import migrate, require_current
from sinks.inbox import Inbox

NAMESPACE = "proof"
SESSION_ID = "proof-session"

_STORE = "cayu.db"
_DATABASE = "handbell.db"


class ProofError(ConfigError):
    """A command of the proof cannot be run on this folder now; one line, exit code 2."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Where the two databases stand."""

    path: Path

    @property
    def store(self) -> Path:
        """Return the runtime's store."""
        return self.path / _STORE

    @property
    def database(self) -> Path:
        """Return Handbell's database."""
        return self.path / _DATABASE


@dataclass(frozen=True, slots=True)
class House:
    """Handbell's side of an open folder."""

    folder: Folder
    engine: AsyncEngine
    clock: Clock
    inbox: Inbox


def new_folder(path: Path) -> Folder:
    """Make the folder of a new proof; raises ProofError where one is there already or none can be."""
    folder = Folder(path.expanduser().absolute())
    if any(file.exists() for file in (folder.store, folder.database)):
        raise ProofError(f"{folder.path} holds a pause already: name a fresh folder")
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.database.touch()
    except OSError as error:
        raise ProofError(f"{folder.path} cannot be used ({error.strerror}): name a folder of your own") from None
    return folder


def paused_folder(path: Path) -> Folder:
    """Return the folder of a proof that has paused; raises ProofError where it has not."""
    folder = Folder(path.expanduser().absolute())
    if not (folder.store.is_file() and folder.database.is_file()):
        raise ProofError(f"{folder.path} holds no pause yet: run `handbell proof pause {path}` first")
    return folder


@asynccontextmanager
async def opened(folder: Folder, *, is_new: bool = False) -> AsyncIterator[House]:
    """Open Handbell's database for the block, and make its tables first where it is new. Raises ConfigError."""
    engine = create_engine(database_url(f"sqlite:///{folder.database}", relative_to=folder.path))
    try:
        if is_new:
            await migrate(engine)
        await require_current(engine)
        clock = SystemClock()
        yield House(folder, engine, clock, Inbox(engine, clock))
    finally:
        await engine.dispose()
