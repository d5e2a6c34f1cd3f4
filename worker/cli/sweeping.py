"""`handbell sweep`: one bounded pass over each source, now."""

import argparse
from typing import Any

from worker.cli.arguments import add_config, add_namespace, load


def add_to(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("sweep", help="one bounded pass over the sources now")
    add_config(parser)
    add_namespace(parser)
    parser.add_argument("--head", action="store_true", help="only what changed since the last pass")
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    from reconciler.sweep import Mode, Sweeper
    from worker.app import open_core
    from worker.cli.main import DONE, INCOMPLETE

    code = DONE
    async with open_core(load(arguments)) as core:
        sweeper = Sweeper(core.engine, core.clock, core.book, core.namespaces, core.notifications)
        names = [arguments.namespace] if arguments.namespace else core.book.namespaces
        for name in names:
            await core.book.recheck(name)
            done = await sweeper.sweep(name, Mode.HEAD if arguments.head else Mode.FULL)
            if done is None:
                print(f"{name}: another process is sweeping it now")
                code = INCOMPLETE
                continue
            words = ", ".join(sorted(done.problems)) or ("complete" if done.is_complete else "head")
            print(
                f"{name}: {done.pages} pages, {done.rows_seen} rows, {done.rows_changed} changed, "
                f"{done.verified} verified: {words}"
            )
            code = INCOMPLETE if done.problems else code
    return code
