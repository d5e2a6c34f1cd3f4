"""What the wiring gives to a source besides its own options; plain values and shared resources, no settings."""

from dataclasses import dataclass
from pathlib import Path

from aiohttp import ClientSession

from config.clock import Clock


@dataclass(frozen=True, slots=True)
class SourceServices:
    """Shared by every source of a process.

    `folder` is the configuration file's: relative paths count from it. `http` is there for the sources that ask
    over HTTP; the wiring opens and closes it. `reads_pages_apart` says that this process also delivers: a source whose
    pages are computed here (its module says PAGES_APART) has them read by a child process.
    """

    clock: Clock
    folder: Path
    http: ClientSession | None = None
    reads_pages_apart: bool = False
