"""The command line: finds the command, runs it, and turns what went wrong into one line and an exit code.

0 done; 1 a dependency is down or Handbell failed; 2 the command line, the configuration, a wrong or unmigrated
store, or a state_dir in use; 3 the work is incomplete and will be repeated.
"""

import argparse
import asyncio
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
    "worker.cli.conformance",
    "worker.cli.audit",
)

Run = Callable[[argparse.Namespace], Coroutine[Any, Any, int]]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a user's mistake is one line on stderr, never a traceback."""
    arguments = build_parser().parse_args(argv)
    run: Run = arguments.run
    try:
        return asyncio.run(run(arguments))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
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


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every command."""
    parser = argparse.ArgumentParser(
        prog="handbell", description="Tells people when an AI agent is waiting for them, and keeps every message true."
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in _COMMANDS:
        import_module(name).add_to(commands)
    return parser


def _say(line: str, code: int) -> int:
    print(f"handbell: {' '.join(line.split())}", file=sys.stderr)
    return code
