"""Collects tests by pytest itself and says which there are, in which variants, and which are marked to be left out.

Run as a plug-in of `pytest --collect-only` in a process of its own: what is collected is what would run.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MARK = "@@collected@@"

_LEFT_OUT = frozenset({"skip", "skipif", "xfail", "soak"})

# A test that leaves itself out while it runs cannot be told from its marks.
_LEAVES_ITSELF_OUT = re.compile(r"pytest\.(skip|xfail|importorskip|exit)\(|unittest\.skip|__test__ = False")


@dataclass(frozen=True, slots=True)
class Found:
    """One test function: the ids of its variants, and the marks by which any of them would be left out."""

    variants: tuple[str, ...]
    left_out_by: frozenset[str]

    def runs_on(self, database: str) -> bool:
        """Answer whether one of its variants is of that database."""
        return any(database in variant for variant in self.variants)


def collect(files: Iterable[str]) -> Mapping[str, Found]:
    """Return every test of `files` as `file::name`; raises RuntimeError where pytest cannot collect them."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    command += ["-p", "tests.contract.cayu_guide.collecting", *sorted(set(files))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode != 0 or len(lines) != 1:
        raise RuntimeError(f"pytest cannot collect the named files:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    said: dict[str, list[list[str]]] = json.loads(lines[0].removeprefix(MARK))
    return {name: Found(tuple(variants), frozenset(marks)) for name, (variants, marks) in said.items()}


def leaves_itself_out(file: str) -> bool:
    """Answer whether something in the file leaves a test out while it runs."""
    return _LEAVES_ITSELF_OUT.search((ROOT / file).read_text()) is not None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Print what was collected on one line (only in the process that `collect` starts)."""
    variants: dict[str, list[str]] = defaultdict(list)
    marks: dict[str, set[str]] = defaultdict(set)
    for item in session.items:
        name, _, variant = item.nodeid.partition("[")
        variants[name].append(variant.rstrip("]"))
        marks[name] |= {mark.name for mark in item.iter_markers()} & _LEFT_OUT
    print(f"\n{MARK}" + json.dumps({name: [ids, sorted(marks[name])] for name, ids in variants.items()}))
