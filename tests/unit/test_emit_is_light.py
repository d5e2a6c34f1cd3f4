"""What the consumer takes from the agent's side costs neither Cayu nor a Redis client."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def loaded_after(statement: str) -> set[str]:
    """Return the packages that a fresh interpreter has imported after `statement`."""
    code = f"import sys; {statement}; print(' '.join({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_hint_imports_neither_cayu_nor_redis() -> None:
    loaded = loaded_after("from sinks.emit import Hint, MalformedHint, __version__; import sinks.emit.names")

    assert not loaded & {"cayu", "redis", "pydantic", "sqlalchemy", "structlog", "config"}


def test_package_s_names_are_the_ones_it_lists() -> None:
    loaded = loaded_after("import sinks.emit; [getattr(sinks.emit, name) for name in sinks.emit.__all__]")

    assert {"cayu", "redis"} <= loaded


def test_unknown_name_is_an_attribute_error() -> None:
    loaded_after("import sinks.emit; assert not hasattr(sinks.emit, 'nothing')")
