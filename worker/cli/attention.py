"""`handbell ack` and `handbell dismiss`: what a person says about one request."""

import argparse
from datetime import datetime
from typing import Any

from worker.cli.arguments import actor, add_config, add_namespace, duration, load


def add_to(commands: Any) -> None:
    """Add both commands."""
    parser = commands.add_parser("ack", help="say that you are on it: no reminder and no escalation for a time")
    _add_request(parser)
    parser.add_argument(
        "--for", dest="pause", type=duration, required=True, metavar="DURATION", help="for how long, such as 1h"
    )
    parser.set_defaults(run=_acknowledge)

    parser = commands.add_parser("dismiss", help="put a request aside: nothing more is said of it but its end")
    _add_request(parser)
    parser.add_argument("--because", metavar="TEXT", help="why; kept with the request and in the audit")
    parser.add_argument("--undo", action="store_true", help="tell of it again")
    parser.set_defaults(run=_dismiss)


def _add_request(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument("attention_id", metavar="ATTENTION_ID")
    add_namespace(parser)


async def _acknowledge(arguments: argparse.Namespace) -> int:
    from reconciler.attention import Attention
    from reconciler.listing import find_notification
    from worker.app import open_core

    async with open_core(load(arguments)) as core:
        found = await find_notification(core.engine, arguments.attention_id, arguments.namespace)
        attention = Attention(core.engine, core.clock, core.routing, actor=actor())
        until = await attention.acknowledge(found, arguments.pause)
    print(f"{arguments.attention_id}: acknowledged until {_instant(until)}; after that it is told again if it waits")
    return 0


async def _dismiss(arguments: argparse.Namespace) -> int:
    from config.errors import SettingsError
    from reconciler.attention import Attention
    from reconciler.listing import find_notification
    from worker.app import open_core

    if not arguments.because and not arguments.undo:
        raise SettingsError("dismiss: say why, with --because TEXT")
    async with open_core(load(arguments)) as core:
        found = await find_notification(core.engine, arguments.attention_id, arguments.namespace)
        attention = Attention(core.engine, core.clock, core.routing, actor=actor())
        if arguments.undo:
            await attention.undo_dismissal(found, arguments.because or "")
        else:
            await attention.dismiss(found, arguments.because)
    undo = f"handbell dismiss {arguments.attention_id} --undo"
    said = "told of again" if arguments.undo else f"put aside; `{undo}` takes it back"
    print(f"{arguments.attention_id}: {said}")
    return 0


def _instant(at: datetime) -> str:
    return at.isoformat(timespec="seconds")
