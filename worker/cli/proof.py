"""`handbell proof`: the runnable proof of Cayu's guide; every command is a fresh process on one folder."""

import argparse
import logging
from pathlib import Path
from typing import Any

from worker.cli.arguments import print_json

_KINDS = ("user_input", "tool_approval", "manual_recovery")
_DEEDS = {
    "answer": "answer the question through the runtime",
    "approve": "approve the tool through the runtime",
    "deny": "deny the tool through the runtime",
    "recover": "settle the uncertain outcome by a receipt, through the runtime",
    "interrupt": "interrupt the session through the runtime",
}


def add_to(commands: Any) -> None:
    """Add the command and its actions."""
    proof = commands.add_parser("proof", help="the runnable proof of Cayu's guide, step by step on a folder")
    actions = proof.add_subparsers(metavar="ACTION", required=True)
    pause = _action(actions, "pause", "run an agent in a fresh DIR until it waits for a person", _pause)
    pause.add_argument("--kind", choices=_KINDS, default="user_input", help="what it waits for (default: user_input)")
    fault = pause.add_mutually_exclusive_group()
    fault.add_argument(
        "--crash-before-delivery", action="store_true", help="exit 17 once the pause is committed, before its delivery"
    )
    fault.add_argument("--fail-after-accept", action="store_true", help="commit each hint and lose its acknowledgement")
    consume = _action(actions, "consume", "recover events, refresh and sweep, once each", _consume)
    consume.add_argument("--crash-after-accept", action="store_true", help="exit 18 once a notification is inserted")
    _action(actions, "inspect", "print attention id, kind, summary and state of each notification", _inspect)
    for deed, words in _DEEDS.items():
        _action(actions, deed, words, _act).set_defaults(deed=deed)
    _action(actions, "late-hint", "let the opening event come once more, late", _late_hint)


def _action(actions: Any, name: str, words: str, run: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=words)
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.set_defaults(run=run)
    return parser


def _require_cayu() -> None:
    from config.errors import SettingsError
    from config.logs import configure_logs

    configure_logs(form="console", level="warning")
    # The runtime logs the failures that are injected here on purpose.
    logging.disable(logging.CRITICAL)
    try:
        import cayu  # noqa: F401  # it is imported for the line that says that it is missing
    except ModuleNotFoundError:
        raise SettingsError("the proof needs cayu: install handbell[cayu]") from None


async def _pause(arguments: argparse.Namespace) -> int:
    _require_cayu()
    from reconciler.states import Kind
    from worker.proof.agent import Fault, pause_in

    fault = Fault.NONE
    if arguments.crash_before_delivery:
        fault = Fault.CRASH_BEFORE_DELIVERY
    elif arguments.fail_after_accept:
        fault = Fault.FAIL_AFTER_ACCEPT
    await pause_in(arguments.folder, Kind(arguments.kind), fault)
    print(f"paused: {arguments.kind}")
    return 0


async def _consume(arguments: argparse.Namespace) -> int:
    _require_cayu()
    from worker.cli.main import DONE, INCOMPLETE
    from worker.proof.consuming import consume_in

    done = await consume_in(arguments.folder, crashes_after_accept=arguments.crash_after_accept)
    print(f"recovery: {done.recovery.outcome}, {done.recovery.recovered} sent again", end="")
    print(f", {done.recovery.outstanding} outstanding")
    print(f"refresh: {done.refreshed.sessions} sessions, {done.refreshed.incomplete} incomplete")
    words = ", ".join(sorted(done.swept.problems)) or "complete"
    print(f"sweep: {done.swept.rows_seen} rows, {done.swept.rows_changed} changed: {words}")
    return DONE if done.is_complete else INCOMPLETE


async def _inspect(arguments: argparse.Namespace) -> int:
    from worker.proof.shown import inspect_in

    for row in await inspect_in(arguments.folder):
        print_json(row)
    return 0


async def _act(arguments: argparse.Namespace) -> int:
    _require_cayu()
    from worker.proof.agent import Deed, act_in

    kind = await act_in(arguments.folder, Deed(arguments.deed))
    print(f"{arguments.deed}: done, for the {kind}")
    return 0


async def _late_hint(arguments: argparse.Namespace) -> int:
    _require_cayu()
    from worker.cli.main import DONE, INCOMPLETE
    from worker.proof.consuming import hint_late_in

    late = await hint_late_in(arguments.folder)
    print(f"late hint: {late.duplicates_refused} duplicate refused, {late.refreshed.sessions} session refreshed")
    return INCOMPLETE if late.refreshed.incomplete else DONE
