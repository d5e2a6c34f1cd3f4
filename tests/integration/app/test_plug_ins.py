"""docs/plug-ins.md: the plug-in that stands there, built, installed, tested by the shipped suites, and run."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"```(?:toml|python)\n# (\S+)\n(.*?)```", re.DOTALL)
FILES = dict(BLOCK.findall((ROOT / "docs" / "plug-ins.md").read_text()))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the distribution, built and installed without a network."""
    folder = tmp_path_factory.mktemp("plug-in")
    package = folder / "handbell_folder"
    package.mkdir()
    (package / "__init__.py").touch()
    for name in ("pyproject.toml", "handbell_folder/journal.py", "handbell_folder/folder.py"):
        (folder / name).write_text(FILES[name])
    site = folder / "site"
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", str(site)]
    subprocess.run([*command, "--no-deps", "--no-build-isolation", "--no-index", "."], cwd=folder, check=True)
    return site


def environment(site: Path) -> dict[str, str]:
    variables = {"HANDBELL_WEB__LISTEN": "127.0.0.1:0", "HANDBELL_WEB__ADMIN_LISTEN": "127.0.0.1:0"}
    return {**os.environ, **variables, "PYTHONPATH": f"{site}:{ROOT}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def test_plug_in_of_the_page_passes_the_shipped_suites(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "test_handbell_folder.py").write_text(FILES["test_handbell_folder.py"])

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_handbell_folder.py"],
        cwd=tmp_path,
        env=environment(installed),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with the page's configuration and one request."""
    (tmp_path / "handbell.toml").write_text(FILES["handbell.toml"])
    (tmp_path / "requests").mkdir()
    say(tmp_path, "active")
    return tmp_path


def say(desk: Path, state: str) -> None:
    """Write the request anew, in one step: the source may be reading."""
    request = {"kind": "tool_approval", "agent": "billing", "state": state}
    (desk / "written").write_text(json.dumps(request))
    (desk / "written").rename(desk / "requests" / "invoice.json")


async def handbell(desk: Path, site: Path, command: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "handbell",
        command,
        cwd=desk,
        env=environment(site),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


async def told(desk: Path, wanted: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """Wait for messages in the journal, which is a file of a stranger: nothing rings when it grows."""
    journal = desk / "messages.jsonl"
    async with asyncio.timeout(60):
        while True:
            lines = journal.read_text().splitlines() if journal.exists() else []
            messages = [json.loads(line) for line in lines]
            if wanted(messages):
                return messages
            await asyncio.sleep(0.05)


async def test_check_tries_the_plug_ins_like_everything_else(installed: Path, desk: Path) -> None:
    for command in ("migrate", "check"):
        process = await handbell(desk, installed, command)
        out, _ = await process.communicate()
        assert process.returncode == 0, out.decode()

    assert "ok   source desk: folder, readable" in out.decode()
    assert f"ok   destination log: appends to {desk / 'messages.jsonl'}" in out.decode()


async def test_run_tells_a_plug_ins_request_by_a_plug_ins_channel(installed: Path, desk: Path) -> None:
    process = await handbell(desk, installed, "run")
    try:
        opened = await told(desk, lambda messages: len(messages) == 1)
        say(desk, "resolved")
        told_all = await told(desk, lambda messages: len(messages) == 2)
    finally:
        process.terminate()
        out, _ = await process.communicate()

    request = {"id": "invoice", "agent": "billing", "summary": "Tool approval required."}
    assert [(item["purpose"], item["requests"]) for item in told_all] == [
        ("open", [request | {"state": "active"}]),
        ("settle", [request | {"state": "resolved"}]),
    ]
    assert opened == told_all[:1]
    assert process.returncode == 0, out.decode()
