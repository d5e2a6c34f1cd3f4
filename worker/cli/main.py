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
    "worker.cli.sources",
    "worker.cli.fanout",
    "worker.cli.proof",
    "worker.cli.conformance",
    "worker.cli.audit",
)

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
    except ConfigError as error:
        return _say(str(error), error.exit_code)
    except SourceUnavailable as error:
        return _say(str(error), WRONG if isinstance(error, SourceMissing) else FAILED)
    except ReconcilerError as error:
        return _say(str(error), WRONG)
    except RedisError as error:
        return _say(f"Redis does not do what is asked ({type(error).__name__}): check [redis] url", FAILED)
    except SQLAlchemyError as error:
        return _say(f"the database does not do what is asked ({type(error).__name__}): check [database] url", FAILED)
    except OSError as error:
        return _say(f"{error.filename or 'the system'}: {error.strerror or type(error).__name__}", FAILED)
    return code


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


def _say(line: str, code: int) -> int:
    print(f"handbell: {' '.join(line.split())}", file=sys.stderr)
    return code
