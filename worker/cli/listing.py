"""`handbell notifications` and `handbell deliveries`: one object a line."""

import argparse
from typing import Any

from worker.cli.arguments import add_config, add_json, add_namespace, load, print_json, print_table


def add_to(commands: Any) -> None:
    """Add both commands."""
    parser = commands.add_parser("notifications", help="the requests and their states")
    add_config(parser)
    add_json(parser)
    parser.add_argument("--state", metavar="S", help="only requests in this state")
    add_namespace(parser)
    parser.set_defaults(run=_notifications)

    parser = commands.add_parser("deliveries", help="who was told what, how often it was tried, and why")
    add_config(parser)
    add_json(parser)
    parser.add_argument("--attention", metavar="ID", help="only deliveries of this request")
    add_namespace(parser)
    parser.add_argument("--why", action="store_true", help="the whole story of one request, in time order")
    parser.set_defaults(run=_deliveries)


async def _notifications(arguments: argparse.Namespace) -> int:
    from config.errors import SettingsError
    from reconciler.listing import notifications
    from reconciler.states import AttentionState
    from worker.app import open_core

    if arguments.state is not None and arguments.state not in set(AttentionState):
        raise SettingsError(f"--state {arguments.state!r} is no state: use one of {', '.join(AttentionState)}")
    async with open_core(load(arguments)) as core:
        rows = notifications(core.engine, state=arguments.state, namespace=arguments.namespace)
        if arguments.json:
            async for row in rows:
                print_json(row)
        else:
            columns = (
                "namespace",
                "attention_id",
                "kind",
                "state",
                "reason",
                "agent_name",
                "first_seen_at",
                "dismissed",
            )
            print_table([row async for row in rows], columns)
    return 0


async def _deliveries(arguments: argparse.Namespace) -> int:
    from config.errors import SettingsError
    from reconciler.listing import find_notification
    from reconciler.story import deliveries, story
    from worker.app import open_core

    if arguments.why and not arguments.attention:
        raise SettingsError("--why tells the story of one request: name it by --attention ID")
    async with open_core(load(arguments)) as core:
        found = None
        if arguments.attention:
            found = await find_notification(core.engine, arguments.attention, arguments.namespace)
        if arguments.why and found is not None:
            rows = await story(core.engine, found)
            columns = ("at", "what", "destination", "recipient", "purpose", "reason", "route", "detail")
        else:
            rows = [row async for row in deliveries(core.engine, notification_id=found, namespace=arguments.namespace)]
            columns = ("id", "destination", "recipient", "purpose", "status", "attempts", "reason", "next_attempt_at")
        if arguments.json:
            for row in rows:
                print_json(row)
        else:
            print_table(rows, columns)
    return 0
