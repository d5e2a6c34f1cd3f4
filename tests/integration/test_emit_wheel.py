"""The emitter's wheel, installed beside an agent project that has its own `config/` and `worker/`."""

import asyncio
import shutil
import signal
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from redis.asyncio import Redis

from sinks.emit.names import CONSUMER_KEY
from sinks.emit.version import __version__
from tests.support.answering import Answering, answering

ROOT = Path(__file__).parents[2]
EMIT = ROOT / "sinks" / "emit"

AGENT = """
import asyncio
import os
import sys
from datetime import UTC, datetime, timedelta

import config
import worker
import handbell_emit
import redis
from handbell_emit import RedisStreamSink
from scripted_runtime import make_app, open_store, pause

assert (config.OWNER, worker.OWNER) == ("agent", "agent")


def now():
    return datetime.now(UTC) + timedelta(seconds=float(os.environ.get("AHEAD_SECONDS", "0")))


def factory():
    store = open_store("cayu.db", ownership_clock=now)
    sink = RedisStreamSink(os.environ["AGENT_REDIS"], namespace="prod", timeout=float(os.environ["TIMEOUT"]))
    return make_app(store, sinks=[sink], owned_resources=(store,))


async def main():
    app = factory()
    await pause(app, "user_input", "s-1")
    await app.aclose()
    print(handbell_emit.__file__, handbell_emit.__version__, redis.__version__)


if __name__ == "__main__":
    asyncio.run(main())
"""

PROJECT = """
[project]
name = "agent"
version = "0"

[tool.cayu]
factory = "agent:factory"

[tool.cayu.workers]
handbell-recovery = "handbell_emit.recovery:worker"
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the agent's side alone without a network."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=EMIT, check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel installed (`site`) beside an agent project that has packages of the rooms' names."""
    folder = tmp_path_factory.mktemp("environment")
    pip_install(folder / "site", "--no-deps", "--no-index", str(wheel))
    project = folder / "project"
    for package in ("config", "worker"):
        (project / package).mkdir(parents=True)
        (project / package / "__init__.py").write_text('OWNER = "agent"\n')
    (project / "agent.py").write_text(AGENT)
    (project / "pyproject.toml").write_text(PROJECT)
    shutil.copy(ROOT / "worker" / "scripted" / "runtime.py", project / "scripted_runtime.py")
    return folder


@pytest.fixture
def project(environment: Path, tmp_path: Path) -> Path:
    """The agent project, of this test alone."""
    return shutil.copytree(environment, tmp_path / "environment") / "project"


def pip_install(target: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*command, *arguments], check=True, capture_output=True)


async def start(project: Path, url: str, *command: str, **environment: str) -> asyncio.subprocess.Process:
    """Start a command of the agent's environment: the interpreter's packages, the wheel, and nothing of this tree."""
    path = [str(project.parent / name) for name in ("newest", "site")]
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        cwd=project,
        env={"PYTHONPATH": ":".join(path), "AGENT_REDIS": url, "TIMEOUT": "10", "PATH": "/usr/bin:/bin", **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def pause_through(project: Path, url: str, **environment: str) -> list[str]:
    """Let the project's agent pause; return what it printed: the package's file, its version, redis-py's."""
    process = await start(project, url, "agent.py", **environment)
    out, error = await process.communicate()
    assert process.returncode == 0, error.decode()
    return out.decode().split()


def test_wheel_holds_one_package_and_needs_only_redis(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = Parser().parsestr(archive.read(f"handbell_emit-{__version__}.dist-info/METADATA").decode())

    modules = {name.removeprefix("handbell_emit/") for name in names if not name.startswith("handbell_emit-")}
    assert modules == {path.name for path in EMIT.glob("*.py")} | {"py.typed"}
    assert metadata.get_all("Requires-Dist") == ["redis>=5"]
    assert (metadata["Name"], metadata["Version"]) == ("handbell-emit", __version__)


async def test_agent_project_with_rooms_of_its_own_pauses_through_the_wheel(project: Path, valkey_url: str) -> None:
    async with answering(valkey_url) as consumer:
        file, version, redis_version = await pause_through(project, valkey_url)

    assert Path(file).is_relative_to(project.parent / "site" / "handbell_emit")
    assert version == __version__
    assert redis_version.startswith("5.")
    assert [entry["session_id"] for entry in consumer.entries] == ["s-1"] * 3


@pytest.mark.soak
async def test_agent_project_pauses_through_the_wheel_with_the_newest_redis_client(
    project: Path, valkey_url: str
) -> None:
    """Needs a package index."""
    pip_install(project.parent / "newest", "--no-deps", "redis>=6")

    async with answering(valkey_url) as consumer:
        _, _, redis_version = await pause_through(project, valkey_url)

    assert int(redis_version.split(".")[0]) >= 6
    assert [entry["session_id"] for entry in consumer.entries] == ["s-1"] * 3


RECOVERY = ["-m", "handbell_emit.recovery", "--app", "agent:factory", "--namespace", "prod"]
WORKER = ["-m", "cayu", "worker", "handbell-recovery"]


async def test_recovery_of_the_wheel_sends_what_failed(project: Path, valkey_url: str, redis: Redis) -> None:
    """Both ways to run it, each on a copy of the same store with three failed hints."""
    await pause_through(project, valkey_url, TIMEOUT="0.05")  # nobody answers
    await redis.flushall()
    other = shutil.copytree(project.parent, project.parent.parent / "other") / "project"

    for folder, command in ((project, RECOVERY), (other, WORKER)):
        async with answering(valkey_url) as consumer:
            while not await redis.exists(CONSUMER_KEY):
                await asyncio.sleep(0.001)
            process = await start(folder, valkey_url, *command, AHEAD_SECONDS="60")
            await received(consumer, 3)
            process.send_signal(signal.SIGTERM)
            _, error = await process.communicate()

        assert process.returncode in {0, 128 + signal.SIGTERM}, error.decode()
        assert {entry["session_id"] for entry in consumer.entries} == {"s-1"}
        assert b"Traceback" not in error
        await redis.flushall()


async def received(consumer: Answering, count: int) -> None:
    async with asyncio.timeout(60):
        while len({entry["event_id"] for entry in consumer.entries}) < count:
            await asyncio.sleep(0.01)
