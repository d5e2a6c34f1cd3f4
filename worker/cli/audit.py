"""`handbell audit`: what people did through Handbell's doors."""

import argparse
from typing import Any

from worker.cli.arguments import add_config, add_json, load, print_json, print_table


def add_to(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("audit", help="what people did: acknowledged, dismissed, silenced, redrove, accepted")
    add_config(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    from reconciler.audit import audit
    from worker.app import open_core

    async with open_core(load(arguments)) as core:
        rows = audit(core.engine)
        if arguments.json:
            async for row in rows:
                print_json(row)
        else:
            print_table([row async for row in rows], ("at", "actor", "action", "subject", "detail"))
    return 0
