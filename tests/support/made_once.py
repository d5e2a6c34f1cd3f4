"""What is expensive to make is made by one of the workers that share a run of the suite, and used by all."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def folder_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder that the workers of this run have in common."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@contextmanager
def made_once(folder: Path) -> Iterator[bool]:
    """Give whether `folder` is new and empty, to be filled within the block; the other workers wait for its end.

    Where the block fails, the folder counts as not made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    done = folder / ".made"
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_new = not done.exists()
        folder.mkdir(exist_ok=True)
        yield is_new
        done.touch()
