"""`handbell cayu fanout`: what the runtime's own delivery of events has left undone, and what to fix; read-only."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from worker.cli.arguments import add_config, add_json, add_namespace, load, print_json, print_table

if TYPE_CHECKING:
    from config.errors import SettingsError
    from reconciler.source_book import Entry
    from reconciler.sources.fanout import Fanout

_COLUMNS = ("session_id", "event_sequence", "status", "attempts", "claimable", "next_attempt_at", "lease_expires_at")
_COUNTS = ("pending", "leased_live", "leased_expired", "failed_retryable", "dead_lettered", "delivered")


def add_to(commands: Any) -> None:
    """Add the command."""
    cayu = commands.add_parser("cayu", help="what the Cayu runtime says of itself")
    actions = cayu.add_subparsers(metavar="ACTION", required=True)
    parser = actions.add_parser("fanout", help="the runtime's own undelivered events and dead letters, read-only")
    add_config(parser)
    add_json(parser)
    add_namespace(parser)
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    from reconciler.sources.fanout import PAGE_LIMIT, ShowsFanout
    from worker.app import open_core

    async with open_core(load(arguments)) as core:
        named = arguments.namespace
        entries = [core.book.entry(named)] if named else list(core.book.entries)
        asked = [(entry.namespace, entry.source) for entry in entries if isinstance(entry.source, ShowsFanout)]
        if not asked:
            raise _nobody(entries, named)
        for namespace, source in asked:
            _show(namespace, await source.fanout(limit=PAGE_LIMIT), as_json=arguments.json)
    return 0


def _nobody(entries: "Sequence[Entry]", named: str | None) -> "SettingsError":
    from config.errors import SettingsError

    where = f"namespace {named!r} is of type {entries[0].type}" if named else "no source is of type cayu or cayu-http"
    return SettingsError(f"{where}: its fan-out cannot be read from here, ask the agent's own server")


def _show(namespace: str, fanout: "Fanout", *, as_json: bool) -> None:
    health = fanout.health.model_dump(mode="json")
    rows = [row.model_dump(mode="json") for row in fanout.rows]
    if as_json:
        said = {"health": health, "rows": rows, "has_more": fanout.has_more, "what_to_fix": list(fanout.what_to_fix)}
        print_json({"namespace": namespace, **said})
        return
    print(f"{namespace}: {', '.join(f'{health[name]} {name}' for name in _COUNTS)}")
    if rows:
        print_table(rows, _COLUMNS)
    if fanout.has_more:
        print("(there are more rows than these)")
    for line in fanout.what_to_fix or ("nothing to fix",):
        print(f"  {line}")
