"""`handbell redrive`: another try for what was given up."""

import argparse
from typing import Any

from worker.cli.arguments import actor, add_config, load

_MAX_ID = 2**63 - 1  # what both databases count to


def add_to(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("redrive", help="try dead deliveries again")
    add_config(parser)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("delivery_id", nargs="?", type=_delivery_id, metavar="DELIVERY_ID")
    which.add_argument("--all-dead", action="store_true", help="every dead delivery")
    which.add_argument("--destination", metavar="NAME", help="every dead delivery of one destination")
    parser.set_defaults(run=_run)


def _delivery_id(text: str) -> int:
    number = int(text)
    if not 0 < number <= _MAX_ID:
        raise argparse.ArgumentTypeError(f"no delivery has the number {text[:40]}: see `handbell deliveries`")
    return number


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
            if not count and arguments.destination not in core.destinations:
                known = ", ".join(sorted(core.destinations))
                print(f"nothing is dead at {arguments.destination!r}, and there is no such destination ({known})")
                return WRONG
        else:
            count = await redrive.all_dead()
    print(f"{count} {'delivery' if count == 1 else 'deliveries'} will be tried again")
    return DONE
