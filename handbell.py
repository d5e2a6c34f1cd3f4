"""The door: makes sure that the rooms are Handbell's own, then enters `worker.cli`.

The rooms bear generic names (`config`, `worker`, ...), which another package, a file in the working directory or a
PYTHONPATH may take. So each room is found without being imported, its `__init__.py` must hold the marker line, and all
must stand beside this file. Only one thing is not seen: another module of a room that somebody overwrote.
"""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

ROOMS = ("config", "sinks", "reconciler", "worker")

_HOME = Path(__file__).resolve().parent
_ADVICE = "give Handbell an environment of its own, without PYTHONPATH"


def main() -> int:
    """Run the command line and return the exit code; 2, and one line on stderr, where a room is not Handbell's."""
    problem = next(filter(None, map(_problem, ROOMS)), None)
    if problem:
        sys.stderr.write(f"handbell: {problem}\n")
        return 2
    from worker.cli.main import main as enter

    return enter(sys.argv[1:])


def _problem(room: str) -> str | None:
    """Return what is wrong with the package that `import room` would give, or None."""
    spec = _spec(room)
    place = _place(spec)
    if spec is None or place is None:
        return f"its package {room!r} is not beside {_HOME / 'handbell.py'}: install Handbell again; {_ADVICE}"
    if not _has_marker(place, room):
        return f"the package {room!r} at {place} is not Handbell's{_culprit(place)}: {_ADVICE}"
    if place.resolve().parent.parent != _HOME:
        return f"the package {room!r} at {place} is of another Handbell than {_HOME / 'handbell.py'}: {_ADVICE}"
    return None


def _spec(room: str) -> ModuleSpec | None:
    try:
        return find_spec(room)
    except ValueError:  # it was imported already, by something that is no import
        return None


def _place(spec: ModuleSpec | None) -> Path | None:
    """Return the file that would be executed, or the folder of a package without `__init__.py`."""
    if spec is None:
        return None
    if spec.has_location and spec.origin:
        return Path(spec.origin)
    return next((Path(folder) for folder in spec.submodule_search_locations or ()), None)


def _has_marker(place: Path, room: str) -> bool:
    try:
        lines = place.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    return place.name == "__init__.py" and f'__handbell__ = "{room}"' in lines


def _culprit(place: Path) -> str:
    """Name the distribution that brought the file, where one says so (slow, therefore only here)."""
    from importlib.metadata import distributions

    for distribution in distributions():
        name = distribution.metadata["Name"]
        if name != "handbell" and any(place == Path(str(file.locate())) for file in distribution.files or ()):
            return f" but of the distribution {name!r}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
