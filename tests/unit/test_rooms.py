"""How the tree is laid: names that hide nothing, short files, rooms that are a marker, light parts that are light."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("config", "sinks", "reconciler", "worker")
MAX_LINES = 350
# What may be imported, besides the standard library and relatively.
ALLOWED = {
    "sinks/emit": {"redis", "cayu"},
    "reconciler/pauses": {"pydantic"},
    "config/migrations": {"alembic", "sqlalchemy"},
}


def tracked_python_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = listed.stdout.splitlines() if listed.returncode == 0 else []
    files = [ROOT / name for name in names] or [
        file for folder in (*ROOMS, "tests") for file in (ROOT / folder).rglob("*.py")
    ]
    return [file for file in files if file.exists()]


FILES = tracked_python_files()


def test_no_file_bears_a_standard_library_modules_name() -> None:
    hidden = [str(file.relative_to(ROOT)) for file in FILES if file.stem in sys.stdlib_module_names]

    assert hidden == []


def test_no_test_folder_bears_a_rooms_name() -> None:
    assert [folder for folder in (ROOT / "tests").rglob("*") if folder.is_dir() and folder.name in ROOMS] == []


def test_no_file_is_too_long() -> None:
    long = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in FILES}

    assert {name: lines for name, lines in long.items() if lines > MAX_LINES} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_room_holds_its_marker_and_nothing_else(room: str) -> None:
    assert (ROOT / room / "__init__.py").read_text() == f'__handbell__ = "{room}"\n'


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_part_imports_only_what_it_may(folder: str) -> None:
    allowed = ALLOWED[folder] | sys.stdlib_module_names

    foreign = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in sorted((ROOT / folder).rglob("*.py"))
        for name in imported_packages(file)
        if name not in allowed
    }

    assert foreign == set()


def imported_packages(file: Path) -> Iterator[str]:
    """Yield the first part of every module that is imported absolutely, wherever in the file."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def test_migrations_are_sequential_and_say_what_an_operator_asks() -> None:
    files = sorted((ROOT / "config" / "migrations" / "versions").glob("*.py"))

    for number, file in enumerate(files, start=1):
        tree = ast.parse(file.read_text())
        said = ast.get_docstring(tree) or ""
        revisions = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        assert file.name.startswith(f"{number:04}_")
        assert revisions["revision"] == f"{number:04}"
        assert revisions["down_revision"] == (f"{number - 1:04}" if number > 1 else None)
        assert "phase: before the code" in said or "phase: after the code" in said, file.name
        assert "\nlock: " in said, file.name
        assert "\non 10 million rows: " in said, file.name


def test_every_channel_stands_in_the_contract_that_keeps_them_apart() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [apart] = [contract["modules"] for contract in contracts if contract["type"] == "independence"]

    channels = [file for file in (ROOT / "worker" / "channels").glob("*.py") if "\nTYPE = " in file.read_text()]

    assert sorted(apart) == sorted(f"worker.channels.{file.stem}" for file in channels)
