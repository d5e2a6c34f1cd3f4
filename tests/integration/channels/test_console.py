"""The console: a line a message, and whoever does not read it keeps nobody from anything else."""

import asyncio
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

from worker.channels.console import Options, build
from worker.channels.outcomes import Sent
from worker.channels.services import Services
from worker.channels.testing.samples import context, message

ROOT = Path(__file__).parents[3]

VICTIM = """
import asyncio
from worker.channels.console import Options, build
from worker.channels.services import Services
from worker.channels.testing.samples import context, message
import sys

async def main():
    channel = build("console", Options(), Services(console=sys.stdout))
    sending = [asyncio.create_task(channel.send(message(), context("console"))) for _ in range(2000)]
    await asyncio.wait(sending, timeout=0.5)
    print(f"{sum(not task.done() for task in sending) > 0}", file=sys.stderr)

asyncio.run(main())
"""


async def test_pipe_that_nobody_reads_stops_neither_the_loop_nor_the_end() -> None:
    reading, writing = os.pipe()
    try:
        victim = await asyncio.create_subprocess_exec(
            sys.executable, "-c", VICTIM, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE
        )
        _, said = await asyncio.wait_for(victim.communicate(), 60)
    finally:
        os.close(reading)
        os.close(writing)

    assert (victim.returncode, said.decode().split()[-1:]) == (0, ["True"])


async def test_lines_come_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("w") as output:
        channel = build("ops", Options(), Services(console=output))
        output.write("before\n")
        sent = await asyncio.gather(*(channel.send(message(key=f"{n:032x}"), context("ops")) for n in range(20)))

    assert sent == [Sent(None)] * 20
    assert [line.partition(" ")[0] for line in path.read_text().splitlines()] == ["before", *["[ops]"] * 20]


async def test_output_without_a_file_is_written_too() -> None:
    output = StringIO()

    await build("ops", Options(), Services(console=output)).send(message(), context("ops"))

    assert output.getvalue().startswith("[ops] ")
