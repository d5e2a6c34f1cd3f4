"""The watch over left-behind processes sees one, and names the test that started it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEAKING = """
import subprocess, sys

def test_that_leaks():
    child = subprocess.Popen([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"],
                             stdout=subprocess.PIPE, start_new_session=True)
    child.stdout.readline()
    open("pid", "w").write(str(child.pid))
"""
TIDY = "def test_that_is_tidy():\n    pass\n"


def run_session(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(test)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.leftovers", "-p", "no:cacheprovider", "test_it.py"],
        cwd=folder,
        env={**environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_process_left_behind_fails_the_session_and_names_its_test(tmp_path: Path) -> None:
    done = run_session(tmp_path, LEAKING)
    pid = int((tmp_path / "pid").read_text())
    os.kill(pid, signal.SIGKILL)

    assert done.returncode == 1, done.stdout
    assert f"left behind: {pid}" in done.stdout
    assert "test_that_leaks" in done.stdout


def test_tidy_session_passes(tmp_path: Path) -> None:
    assert run_session(tmp_path, TIDY).returncode == 0
