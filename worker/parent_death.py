"""Make a child process end when its parent does, also when the parent was killed with -9.

Used for every child that Handbell starts: the embedded server and the scripted agents.
"""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent() -> Callable[[], None] | None:
    """Return the `preexec_fn` that has the kernel send SIGTERM to the child as its parent dies.

    None where the kernel cannot do that (macOS): there the inherited lock of `worker/state_dir.py` shows the
    next start that a server was left behind. The kernel binds the signal to the *thread* that forks, so this
    must be called, and the child started, in the main thread (AssertionError): a short-lived thread would take
    its child with it.
    """
    if sys.platform != "linux":
        return None
    assert threading.current_thread() is threading.main_thread(), "a child of another thread ends with that thread"
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent_pid = os.getpid()

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent_pid:
            os._exit(0)  # the parent died between fork and prctl: no signal will come

    return bind
