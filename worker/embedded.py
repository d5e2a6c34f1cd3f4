"""The embedded default: a real Valkey server as a child of this process, when no `[redis]` is configured.

It listens on a Unix socket in the state directory, keeps an append-only file there, and ends with its parent.
Facts measured: it starts in about 50 ms, stops in about 115 ms and needs 7 MB.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.errors import DependencyError, SettingsError
from worker.parent_death import end_with_parent
from worker.state_dir import StateDir, try_lock
from worker.valkey_binary import valkey_binary

log = structlog.get_logger()

# sockaddr_un holds 104 bytes on macOS and 108 on Linux, the final NUL included.
MAX_SOCKET_PATH_BYTES = 100
_START_TIMEOUT = timedelta(seconds=60)  # a large append-only file is read before the first answer
_STOP_TIMEOUT = timedelta(seconds=10)
_ORPHAN_TIMEOUT = timedelta(seconds=10)
_POLL = timedelta(milliseconds=10)
_RESTART_DELAY = timedelta(seconds=1)
_PORT_TRIES = 5


def embedded_socket(state_dir: Path) -> Path | None:
    """Return the Unix socket of a state directory's server, there or not; None where its path is too long for one."""
    path = state_dir.expanduser().absolute() / "valkey.sock"
    return path if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES else None


class EmbeddedValkey:
    """A Valkey server that lives while this context is entered, holding `state_dir`.

    Raises `SettingsError` where another Handbell holds the directory, `DependencyError` where the server does not
    start. Enter it in the main thread. An acknowledged write survives kill -9 of either process.
    """

    def __init__(self, state_dir: Path) -> None:
        self._held = StateDir(state_dir)
        self._dir = self._held.path
        self._server_lock_fd: int | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._password = secrets.token_hex(32)
        self._port = 0
        self._stopping = False

    @property
    def url(self) -> str:
        """Return the URL to connect to; it may carry a password, so it is never logged."""
        path = self.socket_path
        return f"unix://{quote(str(path))}" if path else f"redis://:{self._password}@127.0.0.1:{self._port}/0"

    @property
    def socket_path(self) -> Path | None:
        """Return the Unix socket, or None where the path is too long for one and loopback TCP is used."""
        return embedded_socket(self._dir)

    @property
    def pid(self) -> int:
        """Return the server's process id."""
        assert self._process is not None, "the server is started"
        return self._process.pid

    async def __aenter__(self) -> Self:
        """Take the directory, end a server left behind there, and start ours."""
        self._held.__enter__()
        try:
            self._server_lock_fd = await _lock_server(self._dir)
            await self._start()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the server and release the directory."""
        await self._close()

    async def watch(self) -> None:
        """Start the server again whenever it ends by itself; returns when the context is left."""
        while not self._stopping and self._process is not None:
            code = await self._process.wait()
            if self._stopping:
                return
            log.warning("valkey.ended", exit_code=code)
            await asyncio.sleep(_RESTART_DELAY.total_seconds())
            if await self._start_once():
                log.info("valkey.restarted")

    async def _start(self) -> None:
        for _ in range(_PORT_TRIES if self.socket_path is None else 1):
            if self.socket_path is None:
                self._port = _free_port()  # another process may take it before the server does: hence the tries
            if await self._start_once():
                return
        log_path = self._dir / "valkey.log"
        raise DependencyError(f"the embedded Valkey did not start: {_last_line(log_path)} (see {log_path})")

    async def _start_once(self) -> bool:
        self._process = await self._spawn()
        return await self._answers()

    async def _spawn(self) -> asyncio.subprocess.Process:
        assert self._server_lock_fd is not None, "the server's lock is held"
        # The lock is ours, so no server lives and the id in this file is stale: it must not outlast this line,
        # since whoever finds a server left behind ends the process that it names.
        (self._dir / "valkey.pid").unlink(missing_ok=True)
        process = await asyncio.create_subprocess_exec(
            valkey_binary(),
            "-",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=self._dir,
            umask=0o077,
            pass_fds=[self._server_lock_fd],
            start_new_session=True,  # Ctrl-C must reach the parent first
            preexec_fn=end_with_parent(),
        )
        # The configuration goes through stdin: an argument would show the password to every user.
        assert process.stdin is not None, "stdin is a pipe"
        process.stdin.write(self._config())
        process.stdin.close()
        return process

    def _config(self) -> bytes:
        lines = [
            f"port {self._port}",
            "bind 127.0.0.1",
            "unixsocket valkey.sock",  # relative to the working directory, so its length does not matter here
            "unixsocketperm 700",
            "dir ./",
            "pidfile valkey.pid",
            "logfile valkey.log",
            "daemonize no",
            "appendonly yes",
            "appendfsync everysec",
            'save ""',
            "maxmemory-policy noeviction",
        ]
        if self._port:
            lines.append(f"requirepass {self._password}")
        return "\n".join(lines).encode()

    async def _answers(self) -> bool:
        process = self._process
        assert process is not None, "the server was spawned"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_START_TIMEOUT.total_seconds()):
                while process.returncode is None:
                    if await _ping(self.url):
                        return True
                    await asyncio.sleep(_POLL.total_seconds())
        return False

    async def _close(self) -> None:
        self._stopping = True
        try:
            if self._process is not None and self._process.returncode is None:
                await _stop(self._process)
        finally:
            if self._server_lock_fd is not None:
                os.close(self._server_lock_fd)
                self._server_lock_fd = None
            self._held.__exit__(None, None, None)


async def _lock_server(directory: Path) -> int:
    """Take the server's lock; end a server that outlived its parent first."""
    lock_path = directory / "server.lock"
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_ORPHAN_TIMEOUT.total_seconds()):
            while True:
                fd = try_lock(lock_path)
                if fd is not None:
                    return fd
                _end_orphan(directory)
                await asyncio.sleep(_POLL.total_seconds())
    raise SettingsError(f"a Valkey left behind in {directory} does not end: stop the process in its valkey.pid")


def _end_orphan(directory: Path) -> None:
    # The lock is held and its parent is gone, so the server lives and the id it wrote is still its own.
    with contextlib.suppress(OSError, ValueError):
        os.kill(int((directory / "valkey.pid").read_text()), signal.SIGTERM)


async def _ping(url: str) -> bool:
    client = Redis.from_url(url)
    try:
        return bool(await client.ping())
    except (RedisError, OSError):
        return False
    finally:
        await client.aclose()


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_TIMEOUT.total_seconds()):
                await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return "it wrote no log"
    return lines[-1].strip() if lines else "it wrote no log"
