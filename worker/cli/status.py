"""`handbell status`: what stands where, in numbers and short lists."""

import argparse
from dataclasses import asdict
from typing import Any

from worker.cli.arguments import add_config, add_json, load, print_json, print_table, printable


def add_to(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("status", help="what stands where: requests, inbox, deliveries, sources, sweeps")
    add_config(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    from reconciler.status import read_status
    from worker.app import open_core
    from worker.recovery_counters import read_recovery

    async with open_core(load(arguments)) as core:
        status = await read_status(core.engine, core.book, sorted(core.destinations))
        status["inbox"] = asdict(await core.inbox.counts())
        recovery = await read_recovery(core.configuration, [source["namespace"] for source in status["sources"]])
        for source in status["sources"]:
            source["recovery"] = recovery.get(source["namespace"])
    if arguments.json:
        print_json(status)
    else:
        _print(status)
    return 0


def _print(status: dict[str, Any]) -> None:
    for name in ("notifications", "deliveries"):
        counted = ", ".join(f"{count} {word}" for word, count in status[name].items() if count)
        print(f"{name}: {counted or 'none'}")
    inbox = status["inbox"]
    print(f"inbox: {inbox['received']} received, {inbox['unprocessed']} unprocessed, {inbox['dead']} dead")
    for namespace, counts in inbox["namespaces"].items():
        if not any(source["namespace"] == namespace and source["configured"] for source in status["sources"]):
            print(f"  {namespace}: {counts['received']} hints kept, but no source has this namespace")
    for title, columns in _LISTS.items():
        if status[title]:
            print(f"\n{title}")
            print_table(status[title], columns)
        if title == "sources":
            _print_beside_sources(status["sources"])


def _print_beside_sources(sources: list[dict[str, Any]]) -> None:
    """Print what a source has only sometimes: a sender's report, a recovery loop, parents of unheard children."""
    for source in sources:
        if source["report"]:
            said = ", ".join(f"{name} {printable(value)}" for name, value in source["report"].items())
            print(f"  {source['namespace']}: newest report: {said}")
        if source["recovery"]:
            said = ", ".join(f"{name} {printable(value)}" for name, value in source["recovery"].items())
            print(f"  {source['namespace']}: recovery loop: {said}")
        for way in source["delegations"]:
            parent, child = printable(way["session_id"]), printable(way["child_session_id"])
            print(f"  {source['namespace']}: {parent} waits on its child {child}, which the scope leaves out")


_LISTS = {
    "sources": ("namespace", "type", "configured", "complete_since", "sweep_due_at", "withheld", "enrolled_after"),
    "sweeps": ("namespace", "mode", "started_at", "pages", "rows", "changed", "verified", "complete", "problems"),
    "destinations": ("name", "configured", "waiting", "broken_at", "broken_reason", "paused_at"),
    "notices": ("opened_at", "kind", "subject", "detail"),
}
