"""`handbell run | sink | work | web`: what runs until it is told to stop."""

import argparse
from typing import Any

from worker.cli.arguments import add_config, load

_HELP = {
    "run": "everything in one process; no server of any kind is needed",
    "sink": "only read hints from the stream into the inbox",
    "work": "only refresh, sweep and deliver",
    "web": "only serve HTTP",
}


def add_to(commands: Any) -> None:
    """Add the four commands."""
    for name, text in _HELP.items():
        parser = commands.add_parser(name, help=text, description=text)
        add_config(parser)
        parser.add_argument("--admin-listen", metavar="HOST:PORT", help="health and metrics of this role")
        parser.set_defaults(run=_run, role=name)


async def _run(arguments: argparse.Namespace) -> int:
    from worker.cli.connecting import print_how_to_connect
    from worker.roles import ALL_ROLES, Role, run_roles

    configuration = load(arguments)
    roles = ALL_ROLES if arguments.role == "run" else frozenset({Role(arguments.role)})
    await run_roles(configuration, roles, admin_listen=arguments.admin_listen, on_started=print_how_to_connect)
    return 0
