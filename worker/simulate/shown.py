"""Shows what a simulation came to: one object a line, rows of a table, or days with a column for each destination."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from reconciler.simulating import TOLD, Line

_GAP = "  "


def as_json(line: Line) -> dict[str, Any]:
    """Return a line with the field names of the public JSON."""
    return {
        "at": line.at.isoformat(),
        "what": line.what,
        "attention_ids": [*line.attention_ids, *line.settled_ids],
        "settled": list(line.settled_ids),
        "destination": line.destination,
        "recipient": line.recipient,
        "purpose": line.purpose,
        "route": line.route,
        "reason": line.reason,
        "until": line.until.isoformat() if line.until else None,
    }


def as_row(line: Line, zone: ZoneInfo) -> dict[str, str]:
    """Return a line for a table; a request that is over has a `-` in front."""
    until = f" until {line.until.astimezone(zone):%Y-%m-%d %H:%M}" if line.until else ""
    return {
        "at": f"{line.at.astimezone(zone):%Y-%m-%d %H:%M}",
        "what": line.what,
        "to": _place(line),
        "purpose": line.purpose or "",
        "requests": _requests(line),
        "route": line.route or "",
        "why": f"{line.reason}{until}",
    }


def timeline(lines: Sequence[Line], zone: ZoneInfo) -> Iterator[str]:
    """Yield the days with what is told on each, a column for each place; what is not told is not there."""
    told = [line for line in lines if line.what == TOLD]
    places = list(dict.fromkeys(_place(line) for line in told))
    cells = {id(line): f"{line.purpose} {_requests(line)}" for line in told}
    widths = [max([len(place), *(len(cells[id(line)]) for line in told if _place(line) == place)]) for place in places]
    for day, of_day in groupby(told, key=lambda line: line.at.astimezone(zone).date()):
        names = [place.ljust(width) for place, width in zip(places, widths, strict=True)]
        yield _GAP.join([f"{day:%a %d %b %Y}", *names]).rstrip()
        for clock, at_once in groupby(of_day, key=lambda line: f"{line.at.astimezone(zone):%H:%M}"):
            yield from _rows(clock, list(at_once), places, widths, cells)
        yield ""


def _rows(
    clock: str, lines: Sequence[Line], places: Sequence[str], widths: Sequence[int], cells: dict[int, str]
) -> Iterator[str]:
    """One row holds one message of each place; a second one of the same minute stands below."""
    columns = [[cells[id(line)] for line in lines if _place(line) == place] for place in places]
    for number in range(max(len(column) for column in columns)):
        texts = [column[number] if number < len(column) else "" for column in columns]
        shown = [text.ljust(width) for text, width in zip(texts, widths, strict=True)]
        yield _GAP.join([(clock if number == 0 else "").ljust(len("Tue 03 Mar 2026")), *shown]).rstrip()


def _place(line: Line) -> str:
    if line.destination is None:
        return ""
    return line.destination if line.recipient == line.destination else f"{line.destination}:{line.recipient}"


def _requests(line: Line) -> str:
    return ", ".join(_words(line.attention_ids, line.settled_ids))


def _words(waiting: Iterable[str], over: Iterable[str]) -> list[str]:
    return [*waiting, *(f"-{attention_id}" for attention_id in over)]
