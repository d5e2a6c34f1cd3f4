"""`handbell inbox dead`: stream entries that could not be read, kept as they came."""

import argparse
from dataclasses import asdict
from typing import Any

from worker.cli.arguments import add_config, add_json, load, print_json, print_table


def add_to(commands: Any) -> None:
    """Add the command."""
    inbox = commands.add_parser("inbox", help="what came in and could not be read")
    actions = inbox.add_subparsers(metavar="ACTION", required=True)
    parser = actions.add_parser("dead", help="stream entries that are not hints")
    add_config(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    from sinks.dead_letters import read_dead_letters
    from worker.app import open_core

    async with open_core(load(arguments)) as core:
        letters = await read_dead_letters(core.engine)
    rows = [{**asdict(letter), "received_at": letter.received_at.isoformat()} for letter in letters]
    if arguments.json:
        for row in rows:
            print_json(row)
    else:
        print_table(rows, ("received_at", "stream_id", "reason", "raw_bytes"))
    return 0
