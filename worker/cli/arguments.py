"""What several commands have in common: their options, how they load the configuration, how they print."""

import argparse
import getpass
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from config.durations import parse_duration
from config.loading import Configuration, load_configuration
from config.logs import configure_logs


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add `--config FILE`."""
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="the TOML file (else HANDBELL_CONFIG, else ./handbell.toml)"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="JSON on stdout and nothing else")


def add_namespace(parser: argparse.ArgumentParser) -> None:
    """Add `--namespace N`."""
    parser.add_argument("--namespace", metavar="N", help="only this namespace")


def duration(text: str) -> timedelta:
    """Read a duration such as `1h30m`, for argparse."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def load(arguments: argparse.Namespace) -> Configuration:
    """Load the configuration that the arguments name and set up the logs as it says; raises SettingsError."""
    configuration = load_configuration(arguments.config)
    configure_logs(form=configuration.settings.log.format, level=configuration.settings.log.level)
    return configuration


def actor() -> str:
    """Return who does this, for the audit: the operating system's user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user id without a name
        return "unknown"


def print_json(value: Any) -> None:
    """Print one JSON value on one line."""
    print(json.dumps(value, ensure_ascii=False))


def print_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Print rows under their column names, aligned; control characters of untrusted names are shown, not obeyed."""
    cells = [[printable(row.get(name)) for name in columns] for row in rows]
    widths = [max(len(name), *(len(line[index]) for line in cells), 0) for index, name in enumerate(columns)]
    for line in [list(columns), *cells]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def printable(value: Any) -> str:
    """Return a value as it may stand on a terminal."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in str(value))
