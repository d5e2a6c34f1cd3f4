"""The recovery worker: `python -m handbell_emit.recovery`, or a `[tool.cayu.workers]` entry of a Cayu project.

It runs in the agent's own environment, with the agent's own application, since only that has the sinks.
"""

import argparse
import asyncio
import contextlib
import inspect
import logging
import re
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any

from .errors import SinkConfigError
from .handbell_sinks import sink_of
from .recovery_loop import MAX_LIMIT, Recovery, run_rounds

DEFAULT_EVERY = timedelta(seconds=30)  # the runtime's own retry deadline
DEFAULT_LIMIT = 100
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}


async def worker(app: Any, stop: asyncio.Event) -> None:
    """Recover until told to stop: the entry point of a Cayu project (`cayu worker NAME`).

    The namespace is that of the application's only Handbell sink; `SinkConfigError` where there is none.
    """
    await run_rounds(Recovery(app, sink_of(app, None), limit=DEFAULT_LIMIT), stop, every=DEFAULT_EVERY)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0 when stopped, 2 for what cannot be used (one line on stderr)."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    try:
        asyncio.run(_run(options))
    except SinkConfigError as error:
        print(f"handbell_emit.recovery: {error}", file=sys.stderr)  # noqa: T201  # the command's one line
        return 2
    return 0


async def _run(options: argparse.Namespace) -> None:
    app = await load_app(options.app)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C cancels instead
            loop.add_signal_handler(number, stop.set)
    try:
        recovery = Recovery(app, sink_of(app, options.namespace), limit=options.limit)
        await run_rounds(recovery, stop, every=options.every)
    finally:
        await app.aclose()


async def load_app(target: str) -> Any:
    """Return the application of `package.module:factory`; `SinkConfigError` says what is wrong with it."""
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        raise SinkConfigError("--app must be package.module:factory")
    try:
        factory = getattr(import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise SinkConfigError(f"--app {target}: {error}") from error
    app = factory() if callable(factory) else factory
    if inspect.isawaitable(app):
        app = await app
    if not hasattr(app, "recover_persisted_event_side_effects"):
        raise SinkConfigError(f"--app {target} gave a {type(app).__name__}, not a Cayu application")
    return app


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m handbell_emit.recovery",
        description="Send again what a Cayu runtime could not hand to Handbell.",
    )
    parser.add_argument("--app", required=True, help="package.module:factory of the agent's own application")
    parser.add_argument("--namespace", required=True, help="the namespace of the application's Handbell sink")
    parser.add_argument("--every", type=_duration, default=DEFAULT_EVERY, help="between two sweeps (default 30s)")
    parser.add_argument("--limit", type=_limit, default=DEFAULT_LIMIT, help="events of one sweep (default 100)")
    return parser


def _duration(text: str) -> timedelta:
    match = re.fullmatch(r"([0-9]{1,6})(ms|s|m|h)", text)
    if match is None or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 30s or 5m")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_LIMIT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_LIMIT}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
