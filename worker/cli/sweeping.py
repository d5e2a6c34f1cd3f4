"""`handbell sweep`: one bounded pass over each source, now."""

import argparse
from typing import TYPE_CHECKING, Any

from worker.cli.arguments import add_config, add_namespace, load

if TYPE_CHECKING:
    from reconciler.errors import SourceError
    from reconciler.sweep import Mode, Pass, Sweeper
    from worker.app import Core


def add_to(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("sweep", help="one bounded pass over the sources now")
    add_config(parser)
    add_namespace(parser)
    parser.add_argument("--head", action="store_true", help="only what changed since the last pass")
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    """Sweep every namespace that is meant, also after one that cannot be; the gravest problem is the exit code."""
    from reconciler.sweep import Mode, Sweeper
    from worker.app import open_core
    from worker.cli.main import DONE, INCOMPLETE

    code, refusals = DONE, []
    async with open_core(load(arguments)) as core:
        sweeper = Sweeper(core.engine, core.clock, core.book, core.namespaces, core.notifications)
        names = [arguments.namespace] if arguments.namespace else core.book.namespaces
        for name in names:
            refusal = await _refusal(core, name)
            done = await _pass(sweeper, name, Mode.HEAD if arguments.head else Mode.FULL)
            if refusal is not None:
                refusals.append(refusal)
            elif done is None or done.problems:
                code = INCOMPLETE
    for refusal in refusals[1:]:
        print(f"also: {refusal}")
    if refusals:
        raise refusals[0]
    return code


async def _refusal(core: "Core", name: str) -> "SourceError | None":
    from reconciler.errors import SourceError

    try:
        await core.book.recheck(name)
    except SourceError as error:
        return error
    return None


async def _pass(sweeper: "Sweeper", name: str, mode: "Mode") -> "Pass | None":
    """Run the pass also where the source cannot be read: what is enrolled must become unavailable."""
    done = await sweeper.sweep(name, mode)
    if done is None:
        print(f"{name}: another process is sweeping it now")
        return None
    words = ", ".join(sorted(done.problems)) or ("complete" if done.is_complete else "head")
    print(
        f"{name}: {done.pages} pages, {done.rows_seen} rows, {done.rows_changed} changed, "
        f"{done.verified} verified: {words}"
    )
    return done
