"""Names this process in the consumer group: stable over restarts, different for every process of a machine."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.errors import SettingsError
from worker.state_dir import make_private, try_lock

_SLOTS = 64


@contextmanager
def consumer_name(state_dir: Path) -> Iterator[str]:
    """Give HOST-SLOT for the block; the lowest slot that no living process of this state directory holds.

    A restarted process gets its slot again, and with it the entries that it left unacknowledged. Raises
    SettingsError where all 64 slots are held.
    """
    slots = state_dir / "consumers"
    make_private(slots)
    for slot in range(_SLOTS):
        lock = try_lock(slots / f"{slot}.lock")
        if lock is not None:
            try:
                yield f"{socket.gethostname()}-{slot}"
            finally:
                os.close(lock)
            return
    raise SettingsError(f"{_SLOTS} consumers run on {state_dir} already: give further ones a state_dir of their own")
