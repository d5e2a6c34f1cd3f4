"""Applies every mutant to a copy of the tree and runs the test that must notice it: `python -m tests.mutants.run`.

First all the named tests run on an unchanged copy and pass; then each mutant's test must fail (by a failed test: one
that cannot even be collected proves nothing). Arguments select mutants by a part of their name.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT, Mutant

AT_ONCE = 2
TIMEOUT_SECONDS = 600
_NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", ".cache", "__pycache__", ".handbell", "build", "dist", "*.egg-info"
)
_TESTS_FAILED = 1  # pytest's exit code


def run_tests(tree: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    """Run tests of a tree in a process of its own; nothing compiled is kept, or an edit might not be seen."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*command, "-o", f"timeout={TIMEOUT_SECONDS}"],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def survives(item: Mutant) -> str | None:
    """Return why the mutant was not killed, None where it was."""
    with tempfile.TemporaryDirectory(prefix="handbell-mutant-") as folder:
        tree = _copy(folder)
        for edit in item.edits:
            edit.apply(tree)
        done = run_tests(tree, [item.killed_by])
    if done.returncode == 0:
        return "its test passes"
    if done.returncode != _TESTS_FAILED or not re.search(r"\b1 failed\b", done.stdout):
        return f"its test could not run:\n{done.stdout[-3000:]}{done.stderr[-1000:]}"
    return None


def _copy(folder: str) -> Path:
    return Path(shutil.copytree(ROOT, Path(folder) / "tree", ignore=_NOT_COPIED))


def _report(item: Mutant) -> bool:
    began = time.monotonic()
    why = survives(item)
    took = time.monotonic() - began
    print(f"{'SURVIVES' if why else 'killed':9} {took:5.1f} s  {item.name} ({item.test_name})", flush=True)
    if why:
        print(why, flush=True)
    return why is None


def main(names: list[str]) -> int:
    """Run the selected mutants; return 1 where one survives or a test fails without any."""
    chosen = [item for item in MUTANTS if not names or any(name in item.name for name in names)]
    with tempfile.TemporaryDirectory(prefix="handbell-mutant-") as folder:
        unchanged = run_tests(_copy(folder), sorted({item.killed_by for item in chosen}))
    if unchanged.returncode != 0:
        print(f"the tests fail without any mutant:\n{unchanged.stdout[-3000:]}{unchanged.stderr[-1000:]}")
        return 1
    with ThreadPoolExecutor(AT_ONCE) as pool:
        killed = sum(pool.map(_report, chosen))
    print(f"{killed} of {len(chosen)} mutants killed")
    return 0 if killed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
