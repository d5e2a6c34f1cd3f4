"""The product from outside: started with arguments and a TOML file, watched by its output, its exit code, its rows."""

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from config.steps import Step
from tests.support.forking_door import ROOT

# Generous: these tests wait for conditions, and the machine may be busy with others.
PATIENCE_SECONDS = 60.0
_LOOK_EVERY_SECONDS = 0.02


class ForkingDoor:
    """Starts processes of the product that have imported everything already."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forking_door"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_clean_environment(),
            cwd=ROOT,
        )
        self._answer()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Make a request and return the answer."""
        assert self._process.stdin is not None, "it was started with a pipe"
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None, "it was started with a pipe"
        self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)
        assert self._process.stdout is not None, "it was started with a pipe"
        self._process.stdout.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None, "it was started with a pipe"
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@dataclass
class Run:
    """One process of the product."""

    door: ForkingDoor
    pid: int
    out: Path
    err: Path
    code: int | None = None

    @property
    def stdout(self) -> str:
        """Return what it has said so far."""
        return self.out.read_text() if self.out.exists() else ""

    @property
    def stderr(self) -> str:
        """Return its log and errors so far."""
        return self.err.read_text() if self.err.exists() else ""

    def has_ended(self) -> bool:
        """Say whether the process is over; then `code` is its exit code, negative for a signal."""
        if self.code is None:
            self.code = self.door.ask(poll=self.pid)["code"]
        return self.code is not None

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert not self.has_ended(), f"it ended: {self.stderr}"
        os.kill(self.pid, number)

    async def ended(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for the end; return the exit code."""
        await until(self.has_ended, self, seconds=seconds)
        assert self.code is not None, "it ended"
        return self.code

    async def said(self, text: str) -> None:
        """Wait until `text` is in the output or the log; fails at once where the process ends before."""
        await until(lambda: text in self.stdout + self.stderr or self.has_ended(), self)
        assert text in self.stdout + self.stderr, f"it ended with {self.code}: {self.stderr}"

    async def stop(self) -> int:
        """Ask it to end (SIGTERM); return the exit code."""
        self.send(signal.SIGTERM)
        return await self.ended()

    async def kill(self) -> None:
        """End it as a power cut would."""
        self.send(signal.SIGKILL)
        await self.ended()

    def problem(self) -> str:
        """Return the one line on stderr; fails where there is more, or a traceback."""
        lines = self.stderr.splitlines()
        assert len(lines) == 1, self.stderr
        assert lines[0].startswith("handbell"), lines
        return lines[0]


@dataclass
class Product:
    """A folder with a configuration, in which the product is started; whatever still runs is killed at the end."""

    folder: Path
    door: ForkingDoor
    environment: dict[str, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)

    @property
    def state_dir(self) -> Path:
        """Return the default state directory of the folder."""
        return self.folder / ".handbell"

    @property
    def database(self) -> Path:
        """Return the embedded database."""
        return self.state_dir / "handbell.db"

    @property
    def redis_url(self) -> str:
        """Return the embedded server's address."""
        return f"unix://{self.state_dir}/valkey.sock"

    def configure(self, toml: str) -> None:
        """Write ./handbell.toml; every port is a free one unless the text says otherwise."""
        if "[web]" not in toml:
            toml += '\n[web]\nlisten = "127.0.0.1:0"\nadmin_listen = "127.0.0.1:0"\n'
        (self.folder / "handbell.toml").write_text(toml)

    def start(self, *arguments: str, **more: Any) -> Run:
        """Start `handbell ARGUMENTS` in the folder."""
        number = len(self.runs)
        out, err = self.folder / f"out.{number}", self.folder / f"err.{number}"
        request = {
            "arguments": arguments,
            "cwd": str(self.folder),
            "environment": self.environment,
            "stdout": str(out),
            "stderr": str(err),
        }
        run = Run(self.door, self.door.ask(**request, **more)["pid"], out, err)
        self.runs.append(run)
        return run

    async def started(self, *arguments: str) -> Run:
        """Start `handbell run` (or another role) and wait until it is ready."""
        run = self.start(*(arguments or ("run",)))
        await run.said("handbell.started")
        return run

    def start_killed_at(self, step: Step, *, armed_by: Path) -> Run:
        """Start everything in a process that kills itself at `step`, once the file `armed_by` is there."""
        toml = str(self.folder / "handbell.toml")
        return self.start("run", "--config", toml, kill_at=step.value, armed_by=str(armed_by))

    async def do(self, *arguments: str) -> Run:
        """Run a command to its end."""
        run = self.start(*arguments)
        await run.ended()
        return run

    async def json(self, *arguments: str) -> list[Any]:
        """Run a command with `--json`, which must succeed and say nothing else; return its lines."""
        run = await self.do(*arguments, "--json")
        assert run.code == 0, run.stderr
        return [json.loads(line) for line in run.stdout.splitlines()]

    def rows(self, statement: str, *values: object) -> list[dict[str, Any]]:
        """Return rows of the embedded database; empty where it is not there yet."""
        return sqlite_rows(self.database, statement, *values)

    def states(self) -> dict[str, str]:
        """Return the state of every request, by session."""
        return {row["session_id"]: row["state"] for row in self.rows("SELECT session_id, state FROM notifications")}

    def is_quiet(self) -> bool:
        """Say whether nothing is left to send and every hint was looked at."""
        unfinished = "SELECT id FROM deliveries WHERE status IN ('pending', 'leased', 'unknown')"
        return not self.rows(unfinished) and not self.rows("SELECT id FROM inbox WHERE processed_at IS NULL")

    def end(self) -> None:
        """Kill what still runs."""
        for run in self.runs:
            if not run.has_ended():
                os.kill(run.pid, signal.SIGKILL)
                deadline = time.monotonic() + PATIENCE_SECONDS
                while not run.has_ended() and time.monotonic() < deadline:
                    time.sleep(_LOOK_EVERY_SECONDS)


async def until(condition: Callable[[], bool], *runs: Run, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until the condition holds; an AssertionError with the logs of `runs` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            logs = "\n".join(f"--- process {run.pid} ({run.code})\n{run.stderr[-4000:]}" for run in runs)
            raise AssertionError(f"this did not become true in {seconds:g} s\n{logs}")
        await asyncio.sleep(_LOOK_EVERY_SECONDS)


def sqlite_rows(path: Path, statement: str, *values: object) -> list[dict[str, Any]]:
    """Return rows of a database that others write to."""
    if not path.exists():
        return []
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(statement, values)]
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return []
        raise
    finally:
        connection.close()


def _clean_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.startswith("HANDBELL_")}


@pytest.fixture(scope="session")
def forking_door() -> Iterator[ForkingDoor]:
    """Give the process that forks the product."""
    door = ForkingDoor()
    yield door
    door.close()


@pytest.fixture
def product(forking_door: ForkingDoor) -> Iterator[Product]:
    """Give a folder to run the product in; its path is short, as a Unix socket wants it."""
    folder = Path(tempfile.mkdtemp(prefix="hb-", dir="/tmp")).resolve()
    product = Product(folder, forking_door)
    try:
        yield product
    finally:
        product.end()
        shutil.rmtree(folder, ignore_errors=True)
