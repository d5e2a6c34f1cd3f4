"""`handbell simulate`: who would be told what, when and why, by a file of routes; nobody is told."""

import argparse
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worker.cli.arguments import add_config, load, print_json, print_table

if TYPE_CHECKING:
    from reconciler.routes import Routing
    from reconciler.simulating import Event

_COLUMNS = ("at", "what", "to", "purpose", "requests", "route", "why")


def add_to(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("simulate", help="who would be told what, when and why; nobody is told")
    add_config(parser)
    parser.add_argument("--routes", type=Path, required=True, metavar="FILE", help="TOML with [[routes]]")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--states", type=Path, metavar="FILE", help="JSON: a list of what happens")
    what.add_argument("--recorded", action="store_true", help="the state changes that this Handbell has recorded")
    parser.add_argument("--until", metavar="INSTANT", help="when to stop (default: a day after the last change)")
    parser.add_argument("--zone", metavar="ZONE", help="time zone of what is shown (default: that of the quiet hours)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one object a line on stdout and nothing else")
    form.add_argument("--timeline", action="store_true", help="days with a column for each destination")
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    from datetime import timedelta

    from reconciler.simulating import Simulation
    from worker.simulate.files import read_routing
    from worker.simulate.shown import as_json, as_row, timeline

    routing = read_routing(arguments.routes)
    until, zone = _instant(arguments.until), _zone(arguments.zone, routing)
    events = await _events(arguments)
    if not events:
        return 0
    lines = Simulation(routing).play(events, until or max(event.at for event in events) + timedelta(days=1))
    if arguments.json:
        for line in lines:
            print_json(as_json(line))
    elif arguments.timeline:
        print("\n".join(timeline(lines, zone)).rstrip())
    else:
        print_table([as_row(line, zone) for line in lines if line.what != "planned"], _COLUMNS)
    return 0


async def _events(arguments: argparse.Namespace) -> "Sequence[Event]":
    from worker.app import open_core
    from worker.simulate.files import read_events
    from worker.simulate.recorded import recorded_events

    if arguments.states is not None:
        return read_events(arguments.states)
    async with open_core(load(arguments)) as core:
        return await recorded_events(core.engine)


def _instant(text: str | None) -> datetime | None:
    from config.errors import SettingsError

    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError("--until: write an instant such as 2026-03-04T12:00:00+01:00") from None
    if at.tzinfo is None:
        raise SettingsError("--until: name a time zone, as in 2026-03-04T12:00:00+01:00")
    return at


def _zone(name: str | None, routing: "Routing") -> Any:
    from zoneinfo import ZoneInfo

    from config.errors import SettingsError

    if name is None:
        return ZoneInfo(next((route.quiet.zone for route in routing.routes if route.quiet is not None), "UTC"))
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise SettingsError('--zone is no time zone: write an IANA name such as "Europe/Berlin"') from None
