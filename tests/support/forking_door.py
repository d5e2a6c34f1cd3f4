"""The product as processes of its own, without paying seconds of imports for each: this one imports once, then forks.

Started by `tests.support.product`. A line on standard input is a request in JSON, a line on standard output
its answer. A child runs the door (`handbell.main`) or, where a request names steps, the roles with a hook that kills.
"""

import asyncio
import gc
import json
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import handbell
from config.steps import Step, StepHook, kill_at

ROOT = Path(__file__).parents[2]

# What `handbell run` with a Cayu source comes to import; cayu's packages import lazily, hence the names.
PRELOADED = (
    "alembic.command",
    "cayu.storage.migrations",
    "cayu.storage.targets",
    "psycopg",
    "uvicorn.lifespan.off",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "reconciler.sources.cayu_store",
    "reconciler.sources.handoff",
    "worker.channels.console",
    "worker.channels.smtp",
    "worker.channels.webhook",
    "worker.checks",
    "worker.cli.connecting",
    "worker.cli.main",
    "worker.roles",
)


def preload() -> None:
    """Import all of it, and build what is built by an import's first use."""
    for name in PRELOADED:
        import_module(name)
    from cayu import CayuApp
    from cayu.human_attention_handoff import HumanAttentionHandoff
    from cayu.sessions import PendingActionQuery, PendingActionResultTooLarge
    from cayu.storage import PostgresSessionStore, SQLiteSessionStore

    CayuApp(human_attention_handoff=HumanAttentionHandoff(None), enable_logging=False)
    assert all((PendingActionQuery, PendingActionResultTooLarge, PostgresSessionStore, SQLiteSessionStore))
    assert threading.active_count() == 1, "a process with threads must not fork"
    gc.freeze()


def serve() -> Callable[[], int]:
    """Answer requests until the input ends; return what is to be run, in a child only."""
    answer({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        if "poll" in request:
            pid, status = os.waitpid(request["poll"], os.WNOHANG)
            answer({"code": os.waitstatus_to_exitcode(status) if pid else None})
            continue
        pid = os.fork()
        if pid == 0:
            return become(request)
        answer({"pid": pid})
    return lambda: 0


def answer(value: dict[str, Any]) -> None:
    """Say one line."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def become(request: dict[str, Any]) -> Callable[[], int]:
    """Take on the files, folder, environment and arguments of the request."""
    os.chdir(request["cwd"])
    for descriptor, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["stdout"], os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, request["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.update(request["environment"])
    sys.argv = ["handbell", *request["arguments"]]
    if "kill_at" in request:
        hook = armed(kill_at(Step(request["kill_at"])), Path(request["armed_by"]))
        return lambda: run_roles(Path(request["arguments"][-1]), hook)
    return handbell.main


def armed(hook: StepHook, file: Path) -> StepHook:
    """Return a hook that does nothing before the file is there."""

    def hook_if_armed(step: Step) -> None:
        if file.exists():
            hook(step)

    return hook_if_armed


def run_roles(configuration: Path, hook: StepHook) -> int:
    """Run everything, as `handbell run` does, with a hook at every step."""
    from config.loading import load_configuration
    from worker.roles import ALL_ROLES
    from worker.roles import run_roles as run

    asyncio.run(run(load_configuration(configuration), ALL_ROLES, on_step=hook))
    return 0


if __name__ == "__main__":
    preload()
    sys.exit(serve()())
