"""The embedded server: it keeps what it acknowledged, ends with its parent, and is held by one Handbell."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from redis.asyncio import Redis

from config.errors import ConfigError, DependencyError, SettingsError
from worker.embedded import MAX_SOCKET_PATH_BYTES, EmbeddedValkey
from worker.state_dir import StateDir

ROOT = Path(__file__).parents[2]

PARENT = """
import asyncio, sys
from pathlib import Path
from redis.asyncio import Redis
from worker.embedded import EmbeddedValkey
if "no-signal" in sys.argv:
    import worker.embedded
    worker.embedded.end_with_parent = lambda: None
async def main():
    async with EmbeddedValkey(Path(sys.argv[1])) as server:
        async with Redis.from_url(server.url) as client:
            for number in range(100):
                await client.rpush("kept", number)
        print(server.pid, flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.fixture
def state_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hbs-", dir="/tmp") as directory:
        yield Path(directory) / "state"


def start_parent(state_dir: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start a process that holds `state_dir`; return it and its server's process id."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(state_dir), *arguments], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline())


def is_running(pid: int) -> bool:
    """Say whether the process lives; where nobody reaps orphans a dead one stays as a zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def ended(pid: int) -> None:
    async with asyncio.timeout(10):
        while is_running(pid):
            await asyncio.sleep(0.005)


async def test_started_server_answers_on_a_private_socket_and_stops_cleanly(state_dir: Path) -> None:
    async with EmbeddedValkey(state_dir) as server, Redis.from_url(server.url) as client:
        pid = server.pid
        assert await client.ping()
        assert server.url == f"unix://{state_dir}/valkey.sock"
        assert server.socket_path is not None
        assert stat.S_IMODE(server.socket_path.stat().st_mode) == 0o700
        assert stat.S_IMODE(state_dir.stat().st_mode) == 0o700
        assert (await client.config_get("maxmemory-policy"))["maxmemory-policy"] == "noeviction"

    assert not is_running(pid)


async def test_data_survive_a_restart(state_dir: Path) -> None:
    async with EmbeddedValkey(state_dir) as server, Redis.from_url(server.url) as client:
        await client.set("kept", "yes")

    async with EmbeddedValkey(state_dir) as server, Redis.from_url(server.url) as client:
        assert await client.get("kept") == b"yes"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own signal; elsewhere the lock does it")
async def test_server_ends_when_its_parent_is_killed_and_keeps_acknowledged_writes(state_dir: Path) -> None:
    parent, server_pid = start_parent(state_dir)

    parent.kill()
    parent.wait()

    await ended(server_pid)
    async with EmbeddedValkey(state_dir) as server, Redis.from_url(server.url) as client:
        assert await client.llen("kept") == 100


async def test_server_left_behind_is_ended_by_the_next_start_and_its_data_kept(state_dir: Path) -> None:
    """Without the kernel's signal, as on macOS: parent killed, its server lives on and holds the lock."""
    parent, server_pid = start_parent(state_dir, "no-signal")
    parent.kill()
    parent.wait()
    assert is_running(server_pid)

    async with EmbeddedValkey(state_dir) as server, Redis.from_url(server.url) as client:
        assert server.pid != server_pid
        assert await client.llen("kept") == 100

    assert not is_running(server_pid)


async def test_second_holder_is_refused_in_one_line_that_names_the_first(state_dir: Path) -> None:
    parent, server_pid = start_parent(state_dir)
    try:
        with pytest.raises(ConfigError) as refused:
            async with EmbeddedValkey(state_dir):
                raise AssertionError("two servers on one directory")

        assert refused.value.exit_code == 2
        assert f"process {parent.pid}" in str(refused.value)
        assert str(state_dir) in str(refused.value)
        assert "\n" not in str(refused.value)
        assert is_running(server_pid)
    finally:
        parent.kill()
        parent.wait()
    await ended(server_pid)


async def test_path_too_long_for_a_socket_uses_loopback_with_a_password(state_dir: Path) -> None:
    long_dir = state_dir / ("d" * MAX_SOCKET_PATH_BYTES)

    async with EmbeddedValkey(long_dir) as server, Redis.from_url(server.url) as client:
        assert server.url.startswith("redis://:")
        assert server.socket_path is None
        assert await client.ping()
        arguments = " ".join(psutil.Process(server.pid).cmdline())
        password = server.url.split(":")[2].split("@")[0]
        assert password not in arguments
        async with Redis.from_url(server.url.replace(password, "wrong")) as stranger:
            with pytest.raises(Exception, match=r"(?i)password|auth"):
                await stranger.ping()


async def test_existing_directory_is_made_private(state_dir: Path) -> None:
    state_dir.mkdir(mode=0o755)

    with StateDir(state_dir):
        assert stat.S_IMODE(state_dir.stat().st_mode) == 0o700


def test_shared_directory_is_refused_and_left_as_it_is() -> None:
    before = Path("/tmp").stat().st_mode

    with pytest.raises(SettingsError, match="shared by all users"), StateDir(Path("/tmp")):
        raise AssertionError("held")

    assert Path("/tmp").stat().st_mode == before


def test_state_dir_that_is_a_file_is_one_line(state_dir: Path) -> None:
    state_dir.write_text("")

    with pytest.raises(SettingsError, match="name a directory of your own"), StateDir(state_dir):
        raise AssertionError("held")


async def test_damaged_append_only_file_is_one_line_and_releases_the_directory(state_dir: Path) -> None:
    async with EmbeddedValkey(state_dir) as server, Redis.from_url(server.url) as client:
        await client.set("kept", "yes")
    manifest = next((state_dir / "appendonlydir").glob("*.manifest"))
    manifest.write_text("not a manifest\n")

    with pytest.raises(DependencyError, match=r"valkey\.log"):
        async with EmbeddedValkey(state_dir):
            raise AssertionError("started")

    with StateDir(state_dir):
        pass


async def test_server_that_dies_is_started_again_with_its_data(state_dir: Path) -> None:
    async with EmbeddedValkey(state_dir) as server, Redis.from_url(server.url) as client:
        watching = asyncio.create_task(server.watch())
        await asyncio.sleep(0)
        await client.set("kept", "yes")
        pid = server.pid

        os.kill(pid, signal.SIGKILL)

        async with asyncio.timeout(10):
            while server.pid == pid or not await answers(server.url):
                await asyncio.sleep(0.01)
        assert await client.get("kept") == b"yes"
    await watching


async def answers(url: str) -> bool:
    async with Redis.from_url(url) as client:
        try:
            return bool(await client.ping())
        except Exception:
            return False
