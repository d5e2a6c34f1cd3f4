"""`handbell migrate`: brings the database to the schema that this version needs."""

import argparse
from typing import Any

from worker.cli.arguments import add_config, load


def add_to(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("migrate", help="bring the database's schema to this version; safe to start twice")
    add_config(parser)
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    from config.database import create_engine
    from config.database_errors import database_place
    from config.migrate import migrate
    from worker.state_dir import make_private

    configuration = load(arguments)
    if configuration.settings.database.url is None:
        make_private(configuration.state_dir)
    engine = create_engine(configuration.database_url)
    try:
        applied = await migrate(engine)
    finally:
        await engine.dispose()
    print(f"{database_place(engine.url)}: {', '.join(applied) if applied else 'nothing to do'}")
    return 0
