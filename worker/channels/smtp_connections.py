"""The connections to one SMTP server: a few, reused while they are fresh, opened again when the server hung up."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from aiosmtplib import SMTP, SMTPResponseException, SMTPServerDisconnected

from config.clock import Clock

# Measured: one reused connection carries most of what a server can take; a few more ride out slow replies.
MAX_CONNECTIONS = 4

# Servers may hang up on silence (RFC 5321 4.5.3.2.7 asks them for 5 minutes, many give less): not reused after this.
MAX_IDLE = timedelta(seconds=60)

SERVICE_CLOSING = 421


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """Where the server is and how to enter; `context` is None where nothing is encrypted."""

    host: str
    port: int
    is_tls_from_start: bool
    context: ssl.SSLContext | None
    username: str | None
    password: str | None
    timeout_seconds: float


class SmtpConnections:
    """Lends connections, at most `MAX_CONNECTIONS` at a time; whoever fails with one must not give it back."""

    def __init__(self, server: SmtpServer, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._idle: list[tuple[datetime, SMTP]] = []

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for one of the connections to be free."""
        async with self._slots:
            yield

    async def begin(self, sender: str, recipient: str) -> SMTP:
        """Return a connection that has accepted the sender and the recipient and waits for DATA.

        A connection that lay idle may turn out dead at its first command: then, once, a new one is opened. Raises
        what aiosmtplib raises; the connection at fault is closed.
        """
        reused = self._take()
        if reused is not None:
            try:
                return await _offer(reused, sender, recipient)
            except (SMTPServerDisconnected, ConnectionError):
                pass
            except SMTPResponseException as error:
                if error.code != SERVICE_CLOSING:
                    raise
        return await _offer(await self.open(), sender, recipient)

    def give_back(self, connection: SMTP) -> None:
        """Keep a connection whose mail was accepted, for the next one."""
        if connection.is_connected:
            self._idle.append((self._clock.now(), connection))

    async def open(self) -> SMTP:
        """Connect, encrypt and log in, as the settings say; raises what aiosmtplib raises."""
        server = self._server
        connection = SMTP(
            hostname=server.host,
            port=server.port,
            timeout=server.timeout_seconds,
            use_tls=server.is_tls_from_start,
            start_tls=server.context is not None and not server.is_tls_from_start,
            tls_context=server.context,
            username=server.username,
            password=server.password,
            local_hostname=socket.gethostname(),  # the default asks the name server first
        )
        await connection.connect()
        return connection

    def close(self) -> None:
        """Hang up on what is idle; safe to call twice."""
        while self._idle:
            self._idle.pop()[1].close()

    def _take(self) -> SMTP | None:
        """Return the connection used last, after dropping those that were idle too long."""
        fresh_since = self._clock.now() - MAX_IDLE
        for used_at, connection in self._idle:
            if used_at < fresh_since:
                connection.close()
        self._idle = [(at, kept) for at, kept in self._idle if at >= fresh_since and kept.is_connected]
        return self._idle.pop()[1] if self._idle else None


async def _offer(connection: SMTP, sender: str, recipient: str) -> SMTP:
    try:
        await connection.mail(sender)
        await connection.rcpt(recipient)
    except BaseException:
        connection.close()
        raise
    return connection
