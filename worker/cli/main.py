"""The command line: finds the command, runs it, and turns what went wrong into one line and an exit code.

0 done; 1 a dependency is down or Handbell failed; 2 the command line, the configuration, a wrong or unmigrated
store, or a state_dir in use; 3 the work is incomplete and will be repeated; 17 and 18 are the injected crashes of
`handbell proof`.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from importlib import import_module
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from config.errors import ConfigError
from reconciler.errors import ReconcilerError, SourceMissing, SourceUnavailable

DONE, FAILED, WRONG, INCOMPLETE = 0, 1, 2, 3

# In the order of `handbell --help`. Each module adds its own parser; it is imported for that alone and imports what
# it needs when it runs, so that `--help` stays quick.
_COMMANDS = (
    "worker.cli.demo",
    "worker.cli.roles",
    "worker.cli.schema",
    "worker.cli.checking",
    "worker.cli.sweeping",
    "worker.cli.status",
    "worker.cli.listing",
    "worker.cli.dead_entries",
    "worker.cli.redriving",
    "worker.cli.attention",
    "worker.cli.silences",
    "worker.cli.simulate",
    "worker.cli.sources",
    "worker.cli.tokens",
    "worker.cli.fanout",
    "worker.cli.proof",
    "worker.cli.conformance",
    "worker.cli.audit",
)

# What a user can do something about; anything else is a defect, and its traceback is wanted.
_SAID_IN_ONE_LINE = (ConfigError, ReconcilerError, RedisError, SQLAlchemyError, OSError)

Run = Callable[[argparse.Namespace], Coroutine[Any, Any, int]]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a user's mistake is one line on stderr, never a traceback."""
    _have_streams()
    arguments = build_parser().parse_args(argv)
    run: Run = arguments.run
    try:
        code = asyncio.run(run(arguments))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output is gone; what is left of it must not be tried again at the interpreter's end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except _SAID_IN_ONE_LINE as error:
        line, code = _in_one_line(error)
        print(f"handbell: {' '.join(line.split())}", file=sys.stderr)
    return code


def _in_one_line(error: Exception) -> tuple[str, int]:
    """Return what the user is told, and the exit code."""
    match error:
        case ConfigError():
            return str(error), error.exit_code
        case SourceMissing():
            return str(error), WRONG
        case SourceUnavailable():
            return str(error), FAILED
        case ReconcilerError():
            return str(error), WRONG
        case RedisError():
            return f"Redis does not do what is asked ({type(error).__name__}): check [redis] url", FAILED
        case SQLAlchemyError():
            return f"the database does not do what is asked ({type(error).__name__}): check [database] url", FAILED
        case OSError():
            return f"{error.filename or 'the system'}: {error.strerror or type(error).__name__}", FAILED
    raise AssertionError("one of _SAID_IN_ONE_LINE") from error


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every command."""
    parser = argparse.ArgumentParser(
        prog="handbell", description="Tells people when an AI agent is waiting for them, and keeps every message true."
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in _COMMANDS:
        import_module(name).add_to(commands)
    return parser


def _have_streams() -> None:
    """Stand in for a standard stream that was closed before we began: the next file would get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  # it stays open as long as the process
