"""README's «Connect a Cayu agent in one minute»: a scaffolded project, two variables, and nothing else."""

import asyncio
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
# What a model would decide, without one: pay the invoice, then say so.
SCRIPTED = """
from cayu.evals import ScriptedModelProvider
from cayu.messages import MessageRole
from cayu.providers import ModelStreamEvent

from app import build_app as build


def respond(request):
    if any(message.role == MessageRole.TOOL for message in request.messages):
        return [ModelStreamEvent.text_delta("paid"), ModelStreamEvent.completed()]
    arguments = {"invoice_id": "INV-7-SENSITIVE", "amount_cents": 12500}
    call = ModelStreamEvent.tool_call(name="pay_invoice", arguments=arguments)
    return [call, ModelStreamEvent.completed({"finish_reason": "tool_calls"})]


def build_app():
    return build(provider=ScriptedModelProvider(response_factory=respond))
"""


class Output:
    """Reads a process's lines, and hands them out once each."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        self._stream = process.stdout
        self.lines: list[str] = []

    async def line(self, wanted: Callable[[str], bool]) -> str:
        """Return the next line that is wanted; an AssertionError, with all that came, where the process ends first."""
        async with asyncio.timeout(60):
            while data := await self._stream.readline():
                self.lines.append(data.decode().rstrip())
                if wanted(self.lines[-1]):
                    return self.lines[-1]
        raise AssertionError("\n".join(self.lines))


@asynccontextmanager
async def running(*arguments: str, cwd: Path, **variables: str) -> AsyncIterator[Output]:
    """Run a command until the block ends, then stop it as a supervisor would."""
    process = await asyncio.create_subprocess_exec(
        *arguments,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield Output(process)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def scaffold(folder: Path) -> Path:
    """Make a project as its owner would, with a scripted provider instead of a model."""
    command = (sys.executable, "-m", "cayu.cli", "new", "agent", "--preset", "long-running")
    made = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=asyncio.subprocess.DEVNULL)
    assert await made.wait() == 0
    project = folder / "agent"
    (project / "scripted.py").write_text(SCRIPTED)
    settings = (project / "pyproject.toml").read_text()
    (project / "pyproject.toml").write_text(settings.replace('"app:build_app"', '"scripted:build_app"'))
    return project


def one_minute() -> tuple[str, list[str]]:
    """Return the configuration of README's section, and the lines of its shell."""
    section = README.split("## Connect a Cayu agent in one minute")[1].split("\n## ")[0]
    [(_, toml), (_, shell)] = re.findall(r"```(toml|sh)\n(.*?)```", section, re.DOTALL)[:2]
    return toml, shell.splitlines()


async def test_scaffolded_agent_needs_two_variables_and_no_code(tmp_path: Path) -> None:
    configuration, shell = one_minute()
    (tmp_path / "handbell.toml").write_text(configuration)
    ports = {"HANDBELL_WEB__LISTEN": "127.0.0.1:0", "HANDBELL_WEB__ADMIN_LISTEN": "127.0.0.1:0"}
    port = free_port()
    project = await scaffold(tmp_path)
    async with running(sys.executable, "-m", "handbell", "run", cwd=tmp_path, **ports) as handbell:
        exports = [await handbell.line(lambda line: line.startswith("export CAYU_")) for _ in range(2)]
        variables = dict(export.removeprefix("export ").split("=", 1) for export in exports)
        serve = (sys.executable, "-m", "cayu.cli", *shell[2].split()[1:], "--port", str(port))
        async with running(*serve, cwd=project, PYTHONPATH=str(project), **variables) as agent:
            await agent.line(lambda line: "Uvicorn running" in line or "startup complete" in line)
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/api", timeout=60) as person:
                await person.post("/run", json={"prompt": "Pay INV-7", "agent": "agent", "session_id": "invoice-7"})
                opened = await handbell.line(lambda line: "Tool approval required" in line)
                item = (await person.get("/inbox")).json()["items"][0]
                await person.post(f"/inbox/{item['id']}/settle", json={"decision": "approve"})
                settled = await handbell.line(
                    lambda line: re.search("resolved|approved", line, re.IGNORECASE) is not None
                )

    assert [f"export {name}" for name in variables] == [line.split("=")[0] for line in shell[:2]]
    assert "SENSITIVE" not in "\n".join(handbell.lines)
    assert opened != settled
    assert item["attention_id"].startswith("attention_")
