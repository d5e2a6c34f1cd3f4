"""`handbell sources accept`: takes another store as a namespace's own, on a person's word."""

import argparse
from typing import Any

from worker.cli.arguments import actor, add_config, load


def add_to(commands: Any) -> None:
    """Add the command."""
    sources = commands.add_parser("sources", help="the runtime databases that are asked")
    actions = sources.add_subparsers(metavar="ACTION", required=True)
    parser = actions.add_parser("accept", help="accept the store now found under a namespace (recorded)")
    add_config(parser)
    parser.add_argument("namespace", metavar="NAMESPACE")
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    from reconciler.errors import WrongStore
    from worker.app import open_core

    async with open_core(load(arguments)) as core:
        source = core.book.entry(arguments.namespace).source
        try:
            await core.book.recheck(arguments.namespace)
        except WrongStore:
            identity = await source.identity()
            await core.namespaces.accept(arguments.namespace, identity, actor=actor())
            print(f"{arguments.namespace}: store {identity} accepted; the next sweep reads it from the beginning")
        else:
            print(f"{arguments.namespace}: the store found is the one it knows; nothing to do")
    return 0
