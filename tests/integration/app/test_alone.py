"""`handbell run` with no configuration at all, and what one state_dir allows."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.forking_door import ROOT
from tests.support.one_pause import Moments, emit
from tests.support.product import PATIENCE_SECONDS, Product, until

FREE_PORTS = {"HANDBELL_WEB__LISTEN": "127.0.0.1:0", "HANDBELL_WEB__ADMIN_LISTEN": "127.0.0.1:0"}


async def test_run_without_configuration_starts_and_says_how_to_connect(product: Product, moments: Moments) -> None:
    """And keeps the hints that come before a source is configured."""
    product.environment = FREE_PORTS
    run = await product.started()

    for said in (str(product.database), product.redis_url, "handbell_emit", "RedisStreamSink", "[[sources]]"):
        assert said in run.stdout
    assert stat.S_IMODE(product.state_dir.stat().st_mode) == 0o700
    await emit(product.redis_url, moments.opening)
    assert len(product.rows("SELECT id FROM inbox")) > 0
    assert await run.stop() == 0


async def test_second_run_on_one_state_dir_is_refused(product: Product) -> None:
    product.environment = FREE_PORTS
    first = await product.started()

    second = await product.do("run")

    assert second.code == 2
    assert f"process {first.pid}" in second.problem()
    assert not first.has_ended()


async def test_signal_while_it_starts_ends_it_and_its_valkey(product: Product) -> None:
    product.environment = FREE_PORTS
    run = product.start("run")
    await until((product.state_dir / "valkey.pid").exists, run)
    server = int((product.state_dir / "valkey.pid").read_text() or "0")

    run.send(signal.SIGTERM)

    assert await run.ended() in (0, -signal.SIGTERM)
    await until(lambda: not server or not psutil.pid_exists(server))
    assert "Traceback" not in run.stderr


@pytest.mark.soak  # it waits out the bounds of Redis' answer and of the server's end
async def test_frozen_valkey_holds_up_neither_the_end_nor_the_next_start(product: Product) -> None:
    product.environment = FREE_PORTS
    run = await product.started()
    (server,) = psutil.Process(run.pid).children()
    server.suspend()

    assert await run.stop() == 0, run.stderr

    assert not server.is_running()
    again = await product.started()
    assert await again.stop() == 0


async def test_valkey_that_is_killed_comes_back_and_hints_are_taken_again(product: Product, moments: Moments) -> None:
    product.environment = FREE_PORTS
    run = await product.started()
    (server,) = psutil.Process(run.pid).children()
    server.kill()

    await emit(product.redis_url, moments.opening)

    assert await run.stop() == 0
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_door_works_with_closed_standard_streams(closed: tuple[int, ...], tmp_path: Path) -> None:
    """As under a supervisor that gives none; no file may take a stream's number."""

    def close() -> None:
        for number in closed:
            os.close(number)

    command = [sys.executable, str(ROOT / "handbell.py"), "migrate"]
    ended = subprocess.run(command, cwd=tmp_path, preexec_fn=close, capture_output=True, timeout=PATIENCE_SECONDS)

    assert ended.returncode == 0, ended.stderr
    assert b"Traceback" not in ended.stderr
    assert (tmp_path / ".handbell/handbell.db").read_bytes().startswith(b"SQLite format 3\0")


async def test_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    shell = f"{sys.executable} {ROOT / 'handbell.py'} --help | true; exit ${{PIPESTATUS[0]}}"
    process = await asyncio.create_subprocess_exec("bash", "-c", shell, cwd=tmp_path, stderr=subprocess.PIPE)

    _, stderr = await process.communicate()

    assert b"Traceback" not in stderr
