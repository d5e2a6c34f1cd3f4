"""`handbell redrive`: another try for what was given up."""

import argparse
from typing import Any

from worker.cli.arguments import actor, add_config, load


def add_to(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("redrive", help="try dead deliveries again")
    add_config(parser)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("delivery_id", nargs="?", type=int, metavar="DELIVERY_ID")
    which.add_argument("--all-dead", action="store_true", help="every dead delivery")
    which.add_argument("--destination", metavar="NAME", help="every dead delivery of one destination")
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    from worker.app import open_core
    from worker.cli.main import DONE, WRONG
    from worker.delivery.redrive import Redrive

    async with open_core(load(arguments)) as core:
        redrive = Redrive(core.engine, core.clock, actor=actor())
        if arguments.delivery_id is not None:
            count = await redrive.one(arguments.delivery_id)
            if not count:
                print(f"delivery {arguments.delivery_id} is not dead, or there is none: see `handbell deliveries`")
                return WRONG
        elif arguments.destination:
            count = await redrive.destination(arguments.destination)
        else:
            count = await redrive.all_dead()
    print(f"{count} {'delivery' if count == 1 else 'deliveries'} will be tried again")
    return DONE
