"""`handbell check`: tries every dependency and says what is durable."""

import argparse
from typing import Any

from worker.cli.arguments import add_config, load


def add_to(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("check", help="try every dependency, say what is durable")
    add_config(parser)
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    from worker.app import delivery_backoff, open_core
    from worker.checks import findings
    from worker.cli.main import DONE, FAILED
    from worker.delivery.backoff import table

    code = DONE
    async with open_core(load(arguments)) as core:
        async for finding in findings(core):
            print(f"{'ok  ' if finding.is_good else 'BAD '} {finding.what}: {finding.found}")
            code = code if finding.is_good else FAILED
        print(f"\nA message that fails is tried again:\n{table(delivery_backoff(core.settings))}")
    return code
