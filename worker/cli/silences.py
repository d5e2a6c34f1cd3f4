"""`handbell silence`: nothing is said of requests that fit, for a time."""

import argparse
from typing import Any

from worker.cli.arguments import actor, add_config, add_json, duration, load, print_json, print_table

_MATCHERS = ("namespace", "kind", "agent", "requester")


def add_to(commands: Any) -> None:
    """Add the command with its actions."""
    silence = commands.add_parser("silence", help="say nothing of requests that fit, for a time")
    actions = silence.add_subparsers(metavar="ACTION", required=True)

    parser = actions.add_parser("add", help="begin one; what waits then is told of at its end")
    add_config(parser)
    parser.add_argument(
        "--for", dest="pause", type=duration, required=True, metavar="DURATION", help="for how long, such as 2h"
    )
    parser.add_argument("--because", required=True, metavar="TEXT", help="why; shown in the list and in the audit")
    for name in _MATCHERS:
        parser.add_argument(f"--{name}", action="append", default=[], metavar="GLOB", help=f"only this {name}")
    parser.add_argument(
        "--label", action="append", default=[], metavar="NAME=GLOB", help="only sessions with this label"
    )
    parser.add_argument("--all", action="store_true", help="everything: say so where nothing narrows it")
    parser.set_defaults(run=_add)

    parser = actions.add_parser("list", help="those that have not ended")
    add_config(parser)
    add_json(parser)
    parser.set_defaults(run=_list)

    parser = actions.add_parser("end", help="end one now; what it held is told of at once")
    add_config(parser)
    parser.add_argument("number", type=int, metavar="NUMBER")
    parser.set_defaults(run=_end)


async def _add(arguments: argparse.Namespace) -> int:
    from config.errors import SettingsError
    from reconciler.replanning import Replanner
    from reconciler.silences import Silences, say_match
    from worker.app import open_core
    from worker.route_wiring import match_of

    stated = _stated(arguments)
    if not stated and not arguments.all:
        raise SettingsError("silence add: name what to silence (--kind, --agent, ...), or say --all")
    match = match_of(_checked(stated))
    async with open_core(load(arguments)) as core:
        number = await Silences(core.engine, core.clock, actor=actor()).add(match, arguments.pause, arguments.because)
        done = await Replanner(core.engine, core.clock, core.routing).matching(match)
    print(f"silence {number}: {say_match(match)}; {done.requests} open requests fit")
    return 0


async def _list(arguments: argparse.Namespace) -> int:
    from reconciler.silences import Silences, match_from, say_match
    from worker.app import open_core

    async with open_core(load(arguments)) as core:
        rows = await Silences(core.engine, core.clock, actor=actor()).listed()
    if arguments.json:
        for row in rows:
            print_json(row)
    else:
        shown = [row | {"match": say_match(match_from(row["match"]))} for row in rows]
        print_table(shown, ("id", "match", "ends_at", "actor", "because"))
    return 0


async def _end(arguments: argparse.Namespace) -> int:
    from reconciler.replanning import Replanner
    from reconciler.silences import Silences, say_match
    from worker.app import open_core

    async with open_core(load(arguments)) as core:
        match = await Silences(core.engine, core.clock, actor=actor()).end(arguments.number)
        done = await Replanner(core.engine, core.clock, core.routing).matching(match)
    print(f"silence {arguments.number} ended: {say_match(match)}; {done.requests} open requests fit")
    return 0


def _stated(arguments: argparse.Namespace) -> dict[str, Any]:
    from config.errors import SettingsError

    stated: dict[str, Any] = {name: getattr(arguments, name) for name in _MATCHERS if getattr(arguments, name)}
    for label in arguments.label:
        name, equals, glob = label.partition("=")
        if not (name and equals and glob):
            raise SettingsError("--label: write NAME=GLOB")
        stated.setdefault("labels", {}).setdefault(name, []).append(glob)
    return stated


def _checked(stated: dict[str, Any]) -> Any:
    """Read the matchers as those of a route are read: a kind that fits nothing is refused."""
    from pydantic import ValidationError

    from config.option_errors import first_of, option_error_lines
    from config.route_settings import MatchSettings

    try:
        return MatchSettings(**stated)
    except ValidationError as error:
        lines = option_error_lines(error, model=MatchSettings)
        raise first_of([f"silence add: --{line}" for line in lines]) from None
