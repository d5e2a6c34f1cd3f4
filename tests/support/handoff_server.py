"""A receiver of the handoff in a process that can be killed: `python -m tests.support.handoff_server URL ...`."""

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.databases import engine_for
from tests.support.handoff import handoff_app, point, serving

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Receiver:
    """A receiver that runs; `base` is the URL of its namespace `prod`."""

    url: str
    process: subprocess.Popen[str]

    @property
    def base(self) -> str:
        return f"{self.url}/handoff/prod"

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def receiver(database_url: str, *, port: int = 0, max_group: int = 100) -> Iterator[Receiver]:
    """Run a receiver on a migrated database for the time of a block."""
    command = [sys.executable, "-m", "tests.support.handoff_server", database_url, str(port), str(max_group)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Receiver(process.stdout.readline().strip(), process)
    finally:
        process.kill()
        process.communicate()


async def _serve(database_url: str, port: int, max_group: int) -> None:
    engine = engine_for(database_url)
    async with serving(handoff_app({"prod": point(engine, "prod", max_group=max_group)}), port=port) as server:
        print(server.url, flush=True)
        await server.serve()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("database_url")
    parser.add_argument("port", type=int)
    parser.add_argument("max_group", type=int)
    arguments = parser.parse_args()
    asyncio.run(_serve(arguments.database_url, arguments.port, arguments.max_group))
