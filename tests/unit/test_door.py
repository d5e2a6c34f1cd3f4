"""The door lets nobody else's `config` or `worker` be executed, and says so in one line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("config", "sinks", "reconciler", "worker")
CLI = """
import sys


def main(argv: list[str]) -> int:
    print("entered", argv)
    return 3 if argv == ["three"] else 0
"""
# A stranger that leaves a trace where it is executed.
STRANGER = "from pathlib import Path\nPath({trace!r}).touch()\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder with the door and the four rooms, and a command line that answers."""
    return make_home(tmp_path / "home")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Return an unrelated folder: the working directory of every run."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Return the file that exists where a stranger's code was executed."""
    return tmp_path / "executed"


def make_home(folder: Path) -> Path:
    for room in ROOMS:
        (folder / room).mkdir(parents=True)
        shutil.copy(ROOT / room / "__init__.py", folder / room)
    (folder / "worker" / "cli").mkdir()
    (folder / "worker" / "cli" / "__init__.py").touch()
    (folder / "worker" / "cli" / "main.py").write_text(CLI)
    shutil.copy(ROOT / "handbell.py", folder)
    return folder


def stranger(trace: Path) -> str:
    return STRANGER.format(trace=str(trace))


def run(
    cwd: Path, *path: Path, arguments: tuple[str, ...] = (), as_script: bool = False, is_bare: bool = False
) -> tuple[int, str, str]:
    """Enter by the door, `path` as PYTHONPATH; return the exit code, stdout and stderr.

    `is_bare` leaves out the environment's own packages, among which the project under test may be installed.
    """
    script = ["-P", "-c", "import sys, handbell; sys.exit(handbell.main())"]  # as the console script does
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *(["-S"] if is_bare else []), *(script if as_script else ["-m", "handbell"]), *arguments],
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def assert_refused(result: tuple[int, str, str], *words: str) -> None:
    code, out, error = result
    assert (code, out) == (2, ""), error
    assert error.startswith("handbell: ")
    assert error.count("\n") == 1
    for word in words:
        assert word in error


@pytest.mark.parametrize("as_script", [True, False])
def test_own_rooms_are_entered_with_arguments_and_exit_code(home: Path, elsewhere: Path, as_script: bool) -> None:
    code, out, error = run(elsewhere, home, arguments=("three",), as_script=as_script)

    assert (code, out, error) == (3, "entered ['three']\n", "")


@pytest.mark.parametrize("room", ROOMS)
def test_strangers_module_on_the_path_is_refused_unexecuted(
    home: Path, elsewhere: Path, tmp_path: Path, trace: Path, room: str
) -> None:
    (tmp_path / "strangers").mkdir()
    (tmp_path / "strangers" / f"{room}.py").write_text(stranger(trace))

    assert_refused(run(elsewhere, tmp_path / "strangers", home), repr(room), f"{room}.py is not Handbell's")
    assert not trace.exists()


def test_strangers_package_on_the_path_is_refused_unexecuted(
    home: Path, elsewhere: Path, tmp_path: Path, trace: Path
) -> None:
    package = tmp_path / "strangers" / "config"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(stranger(trace))

    assert_refused(run(elsewhere, tmp_path / "strangers", home), "'config'", str(package))
    assert not trace.exists()


def test_strangers_module_in_the_working_directory_is_refused_unexecuted(
    home: Path, elsewhere: Path, trace: Path
) -> None:
    (elsewhere / "worker.py").write_text(stranger(trace))

    assert_refused(run(elsewhere, home), "'worker'", str(elsewhere))
    assert not trace.exists()


def test_console_script_does_not_look_into_the_working_directory(home: Path, elsewhere: Path, trace: Path) -> None:
    (elsewhere / "worker.py").write_text(stranger(trace))

    code, _, _ = run(elsewhere, home, as_script=True)

    assert code == 0
    assert not trace.exists()


def test_overwritten_room_is_refused_unexecuted_and_its_distribution_named(
    home: Path, elsewhere: Path, trace: Path
) -> None:
    """As after `pip install config` into the same environment: pip overwrites silently."""
    (home / "config" / "__init__.py").write_text(stranger(trace))
    information = home / "config-0.5.1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: config\nVersion: 0.5.1\n")
    (information / "RECORD").write_text("config/__init__.py,,\n")

    assert_refused(run(elsewhere, home), "'config'", "of the distribution 'config'")
    assert not trace.exists()


def test_room_whose_init_was_removed_is_refused(home: Path, elsewhere: Path) -> None:
    """As after uninstalling the distribution that overwrote it: a namespace package is left."""
    (home / "sinks" / "__init__.py").unlink()

    assert_refused(run(elsewhere, home, is_bare=True), "'sinks'", str(home / "sinks"))


def test_missing_room_is_refused(home: Path, elsewhere: Path) -> None:
    shutil.rmtree(home / "reconciler")

    assert_refused(run(elsewhere, home, is_bare=True), "'reconciler'", "install Handbell again")


def test_rooms_of_another_handbell_are_refused(home: Path, elsewhere: Path, tmp_path: Path) -> None:
    other = make_home(tmp_path / "other")
    (other / "handbell.py").unlink()

    assert_refused(run(elsewhere, other, home), str(other), "another Handbell")


def test_room_that_somebody_imported_before_is_refused(home: Path, elsewhere: Path, tmp_path: Path) -> None:
    strangers = tmp_path / "strangers"
    strangers.mkdir()
    (strangers / "sitecustomize.py").write_text(
        "import sys, types\nsys.modules['config'] = types.ModuleType('config')\n"
    )

    assert_refused(run(elsewhere, strangers, home), "'config'")


def test_marker_of_another_room_is_not_enough(home: Path, elsewhere: Path) -> None:
    shutil.copy(home / "sinks" / "__init__.py", home / "worker" / "__init__.py")

    assert_refused(run(elsewhere, home), "'worker'", "is not Handbell's")


def test_home_behind_a_symlink_is_entered(home: Path, elsewhere: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home)

    code, _, error = run(elsewhere, tmp_path / "link")

    assert (code, error) == (0, "")
