"""The state directory: private to its user, held by one Handbell at a time.

Two locks stand in it. `lock` belongs to the process that holds the directory and goes with it. `server.lock` is
inherited by the embedded server, so it lasts as long as either of the two: who gets the first but not the second
has found a server that outlived its parent. A lock, not a process id, decides: ids are reused, zombies linger.
"""

import fcntl
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from config.errors import SettingsError

_PRIVATE_MODE = 0o700


class StateDir:
    """A held state directory; a context manager.

    Entering makes the directory (mode 0700) and takes the lock; leaving releases it. Raises `SettingsError` where
    another process holds it (naming that process), or where it cannot be made private.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self._lock_fd: int | None = None

    def __enter__(self) -> Self:
        """Make the directory private and take the lock."""
        make_private(self.path)
        self._lock_fd = try_lock(self.path / "lock")
        if self._lock_fd is None:
            raise SettingsError(
                f"state_dir {self.path} is in use by {_holder(self.path / 'lock')}: "
                "stop that one first, or choose another state_dir"
            )
        os.ftruncate(self._lock_fd, 0)
        os.pwrite(self._lock_fd, str(os.getpid()).encode(), 0)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lock; the file stays, since removing it would let two processes lock two files."""
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None


def try_lock(path: Path) -> int | None:
    """Return an open descriptor that holds the exclusive lock of `path`, or None where another process holds it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except OSError as error:
        os.close(fd)
        raise SettingsError(f"cannot lock {path} ({error.strerror}): state_dir must be on a local disk") from error
    return fd


def make_private(path: Path) -> None:
    """Make the directory, or an existing one private (0700); raises SettingsError where that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_MODE)
        status = path.stat()
        if status.st_mode & (stat.S_ISVTX | stat.S_IWOTH):
            # A shared directory such as /tmp itself: making it private would lock everybody else out.
            raise SettingsError(f"state_dir {path} is a directory shared by all users: name one inside it")
        if stat.S_IMODE(status.st_mode) != _PRIVATE_MODE:
            path.chmod(_PRIVATE_MODE)
    except OSError as error:
        reason = error.strerror
        raise SettingsError(f"state_dir {path} cannot be used ({reason}): name a directory of your own") from error


def _holder(lock_path: Path) -> str:
    try:
        pid = int(lock_path.read_text() or "0")
    except (OSError, ValueError):
        pid = 0
    return f"process {pid}" if pid > 0 else "another process"
