"""Handbell's part inside an agent's process; published as `handbell_emit`.

Names are resolved when they are first used: whoever needs only the hint never imports Cayu.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .errors import EmitError, HintNotDurable, MalformedHint, SinkConfigError
    from .hint import Hint
    from .redis_stream import RedisStreamSink
    from .version import __version__

__all__ = [
    "EmitError",
    "Hint",
    "HintNotDurable",
    "MalformedHint",
    "RedisStreamSink",
    "SinkConfigError",
    "__version__",
]


def __getattr__(name: str) -> object:
    """Import the module that defines `name` (PEP 562)."""
    modules = {
        "EmitError": ".errors",
        "Hint": ".hint",
        "HintNotDurable": ".errors",
        "MalformedHint": ".errors",
        "RedisStreamSink": ".redis_stream",
        "SinkConfigError": ".errors",
        "__version__": ".version",
    }
    if name not in modules:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(modules[name], __name__), name)
