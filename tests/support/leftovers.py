"""Fails a session that leaves a process behind: a Valkey or PostgreSQL server, an agent, a worker.

Every process that the session starts inherits a variable of its environment, also one that lost its parent; pytest's
own PYTEST_CURRENT_TEST in it names the test that started it.
"""

import os
import uuid
from collections.abc import Iterator

import psutil
import pytest

SESSION_VARIABLE = "SUITE_SESSION"
GRACE_SECONDS = 3


def pytest_configure() -> None:
    """Mark this session; the workers of pytest-xdist inherit the mark of the session that started them."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ[SESSION_VARIABLE] = uuid.uuid4().hex


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Wait a little for what is ending, then name what is left, and fail."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    _, left = psutil.wait_procs(list(_started_here()), timeout=GRACE_SECONDS)
    for process in left:
        started_by = process.environ().get("PYTEST_CURRENT_TEST", "before the first test")
        print(f"\nleft behind: {process.pid} {' '.join(process.cmdline())[:200]} (started by: {started_by})")
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _started_here() -> Iterator[psutil.Process]:
    mark = os.environ[SESSION_VARIABLE]
    for process in psutil.process_iter():
        try:
            is_ours = process.pid != os.getpid() and process.environ().get(SESSION_VARIABLE) == mark
            if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except psutil.Error:  # it ended meanwhile, or is another user's
            continue
