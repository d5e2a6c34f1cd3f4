"""A real Valkey server for tests: one per test process, emptied before each test, or one of a test's own to kill."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis as redis_sync
from redis.asyncio import Redis

from worker.parent_death import end_with_parent
from worker.valkey_binary import valkey_binary

_START_SECONDS = 10.0


class ValkeyServer:
    """A server on a Unix socket in a short temporary directory; it can be killed, frozen and started again."""

    def __init__(self, *options: str) -> None:
        self._options = options
        self.directory = Path(tempfile.mkdtemp(prefix="hbv-", dir="/tmp"))
        self.url = f"unix://{self.directory}/s"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, password: str | None = None) -> None:
        """Start the server and wait until it answers; `password` is the one that its options require."""
        argv = [str(valkey_binary()), "--port", "0", "--unixsocket", "s", "--save", "", "--loglevel", "warning"]
        self._process = subprocess.Popen(
            [*argv, *self._options],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            preexec_fn=end_with_parent(),
        )
        deadline = time.monotonic() + _START_SECONDS
        client = redis_sync.Redis.from_url(self.url, password=password)
        while True:
            try:
                client.ping()
            except redis_sync.RedisError:
                assert self._process.poll() is None, "the server ended while starting"
                assert time.monotonic() < deadline, "the server does not answer"
                time.sleep(0.005)
            else:
                break
        client.close()

    def kill(self) -> None:
        """End the server as a power cut would (SIGKILL)."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the server and remove what it wrote."""
        if self._process is not None:
            self._end(signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)

    def send(self, number: signal.Signals) -> None:
        """Send a signal: SIGSTOP freezes the server, SIGCONT wakes it."""
        assert self._process is not None, "the server runs"
        os.kill(self._process.pid, number)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    """The server of this test process; its data are those of the running test."""
    server = ValkeyServer("--appendonly", "yes", "--appendfsync", "everysec")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def valkey_url(valkey_server: ValkeyServer) -> str:
    """The URL of an empty server."""
    with redis_sync.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    return valkey_server.url


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator[Redis]:
    """A client of the empty server; it decodes nothing."""
    client: Redis = Redis.from_url(valkey_url)
    yield client
    await client.aclose()


@pytest.fixture
def own_valkey() -> Iterator[ValkeyServer]:
    """A started server of the test's own, to kill, freeze or flush."""
    server = ValkeyServer("--appendonly", "yes")
    server.start()
    yield server
    server.stop()
