"""`handbell demo`: the whole life cycle on a real runtime; no server or account needed."""

import argparse
import time
from typing import TYPE_CHECKING, Any

from config.logs import configure_logs
from worker.cli import demo_pauses
from worker.cli.arguments import print_table

if TYPE_CHECKING:
    from worker.demo.evidence import Shown
    from worker.demo.run import Played


def add_to(commands: Any) -> None:
    """Add the command, and the hidden ones that its child processes run."""
    parser = commands.add_parser("demo", help="the whole life cycle on a real runtime; no server or account needed")
    parser.add_argument("--runtime", choices=("cayu", "pauses"), default="cayu", help="whose agent (default: cayu)")
    parser.add_argument("--answer", action="store_true", help="answer the question yourself (--runtime pauses)")
    parser.set_defaults(run=_run)
    commands.add_parser("demo-agent").set_defaults(run=_agent)
    commands.add_parser("demo-pauses-agent").set_defaults(run=_pauses_agent)


async def _run(arguments: argparse.Namespace) -> int:
    from config.errors import SettingsError
    from worker.cli.main import DONE, FAILED

    configure_logs(form="console", level="warning")
    if arguments.runtime == "pauses":
        return await demo_pauses.run(asks=arguments.answer)
    if arguments.answer:
        raise SettingsError("--answer goes with --runtime pauses: Cayu's requests are answered inside its runtime")
    try:
        from worker.demo.run import play
    except ModuleNotFoundError as error:
        raise SettingsError(f"the demo needs {error.name}: install handbell[demo]") from None
    began = time.monotonic()
    try:
        played = await play(print)
    except TimeoutError:
        print("The demo waited a minute for something that did not happen.")
        return FAILED
    wrong = _print(played)
    print(f"\nThat took {time.monotonic() - began:.1f} s." if not wrong else f"\nNot as it should be: {wrong}.")
    return FAILED if wrong else DONE


async def _agent(_arguments: argparse.Namespace) -> int:
    from worker.demo.agent import serve

    await serve()
    return 0


async def _pauses_agent(_arguments: argparse.Namespace) -> int:
    return await demo_pauses.serve_agent()


def _print(played: "Played") -> str:
    """Print the table; return what is not as it should be, empty where all is."""
    from worker.demo.story import SCENES

    print("\nRead back from the database:\n")
    print_table([_row(shown) for shown in played.evidence.requests], tuple(_row(played.evidence.requests[0])))
    print(f"\n{played.mails} mails received; {played.replayed} duplicate hint refused by the inbox")
    expected = {scene.session_id: scene.ends.value for scene in SCENES}
    problems = [
        f"{shown.session_id} is {shown.state}, not {expected.get(shown.session_id)}"
        for shown in played.evidence.requests
        if shown.state != expected.get(shown.session_id)
    ]
    problems += [
        f"{shown.session_id} has {opened} openings and {settled} settled messages at {name}"
        for shown in played.evidence.requests
        for name, (opened, settled) in _counts(shown).items()
        if (opened, settled) != (1, 1)
    ]
    if played.mails != 2 * len(SCENES):
        problems.append(f"{played.mails} mails arrived instead of {2 * len(SCENES)}")
    if played.replayed != 1:
        problems.append(f"{played.replayed} duplicates were refused instead of 1")
    return "; ".join(problems)


def _row(shown: "Shown") -> dict[str, Any]:
    counts = {name: f"{opened} opening, {settled} settled" for name, (opened, settled) in _counts(shown).items()}
    return {"session": shown.session_id, "kind": shown.kind, "state": shown.state, "reason": shown.reason, **counts}


def _counts(shown: "Shown") -> dict[str, tuple[int, int]]:
    from worker.demo.evidence import messages

    return {name: messages(shown, name) for name in ("console", "mail")}
