"""A mail server on loopback that keeps what it is given and fails on order (needs aiosmtpd: extra `demo`)."""

import asyncio
import logging
import ssl
import warnings
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default as parsing_policy
from enum import StrEnum
from typing import Any, Self
from weakref import WeakSet


class SmtpStage(StrEnum):
    """The command that a fault answers."""

    MAIL = "mail"
    RCPT = "rcpt"
    DATA = "data"  # after the mail has been received


@dataclass(frozen=True, slots=True)
class SmtpFault:
    """What happens instead of a good answer at `stage`, once.

    With `reply` that line is said; with `is_hanging` nothing is said until the server closes; with neither the
    connection is dropped. `accepts` keeps the mail first (only at DATA).
    """

    stage: SmtpStage
    reply: str | None = None
    is_hanging: bool = False
    accepts: bool = False


DROP_AT_MAIL = SmtpFault(SmtpStage.MAIL)
DROP_AFTER_DATA = SmtpFault(SmtpStage.DATA, accepts=True)
HANG_AFTER_DATA = SmtpFault(SmtpStage.DATA, is_hanging=True, accepts=True)
CLOSING = SmtpFault(SmtpStage.MAIL, reply="421 4.3.2 closing, try later")


@dataclass(frozen=True, slots=True)
class ReceivedMail:
    """A mail that the server took."""

    sender: str
    recipients: tuple[str, ...]
    content: bytes

    @property
    def message(self) -> EmailMessage:
        """Return the mail, parsed."""
        parsed = message_from_bytes(self.content, policy=parsing_policy)
        assert isinstance(parsed, EmailMessage)
        return parsed


class FakeSmtp:
    """Use as `async with FakeSmtp() as server`; `mails` and `connections` tell what came, `faults` is a queue.

    `refused` maps a recipient's address to the line that refuses it. With `login` that user name and password
    are required; `context` offers STARTTLS and requires it, or with `is_tls_from_start` encrypts at once.
    """

    def __init__(
        self,
        *,
        login: tuple[str, str] | None = None,
        context: ssl.SSLContext | None = None,
        is_tls_from_start: bool = False,
    ) -> None:
        self.host = "127.0.0.1"
        self.port = 0
        self.mails: list[ReceivedMail] = []
        self.faults: deque[SmtpFault] = deque()
        self.refused: dict[str, str] = {}
        self.connections = 0
        self._login = login
        self._context = context
        self._is_tls_from_start = is_tls_from_start
        self._closing = asyncio.Event()
        self._protocols: WeakSet[Any] = WeakSet()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        logging.getLogger("mail.log").setLevel(logging.ERROR)  # it warns of what a fake does on purpose
        context = self._context if self._is_tls_from_start else None
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, self.host, self.port, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self._closing.set()
        assert self._server is not None
        self._server.close()
        self.hang_up()
        await self._server.wait_closed()

    def hang_up(self) -> None:
        """Drop every connection, as a server does with idle ones."""
        for protocol in list(self._protocols):
            if protocol.transport is not None:
                protocol.transport.abort()

    async def fail(self, stage: SmtpStage, server: Any, envelope: Any) -> str | None:
        """Do what the next fault asks for if it is about `stage`; return the line to say, None where all is well."""
        if not self.faults or self.faults[0].stage is not stage:
            return None
        fault = self.faults.popleft()
        if fault.accepts:
            self.keep(envelope)
        if fault.is_hanging:
            await self._closing.wait()
        if fault.reply is None:
            server.transport.abort()
        return fault.reply or "421 gone"

    def keep(self, envelope: Any) -> None:
        """Take a mail."""
        self.mails.append(ReceivedMail(envelope.mail_from, tuple(envelope.rcpt_tos), bytes(envelope.content)))

    def _protocol(self) -> Any:
        from aiosmtpd.smtp import SMTP, AuthResult

        def authenticate(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> Any:
            given = (data.login.decode(), data.password.decode())
            return AuthResult(success=given == self._login, handled=False)

        is_upgradable = self._context is not None and not self._is_tls_from_start
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a login without STARTTLS is meant so: TLS began before it
            protocol = SMTP(
                _Handler(self),
                hostname="localhost",
                ident="fake",
                tls_context=self._context if is_upgradable else None,
                require_starttls=is_upgradable,
                auth_required=self._login is not None,
                auth_require_tls=is_upgradable,
                authenticator=authenticate if self._login else None,
                loop=asyncio.get_running_loop(),
            )
        self.connections += 1
        self._protocols.add(protocol)
        return protocol


class _Handler:
    """What aiosmtpd calls at each command."""

    def __init__(self, fake: FakeSmtp) -> None:
        self._fake = fake

    async def handle_MAIL(  # noqa: N802  # aiosmtpd's name
        self, server: Any, _session: Any, envelope: Any, address: str, _options: list[str]
    ) -> str:
        failure = await self._fake.fail(SmtpStage.MAIL, server, envelope)
        if failure:
            return failure
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(  # noqa: N802  # aiosmtpd's name
        self, server: Any, _session: Any, envelope: Any, address: str, _options: list[str]
    ) -> str:
        refusals: Mapping[str, str] = self._fake.refused
        failure = await self._fake.fail(SmtpStage.RCPT, server, envelope) or refusals.get(address)
        if failure:
            return failure
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802  # aiosmtpd's name
        failure = await self._fake.fail(SmtpStage.DATA, server, envelope)
        if failure:
            return failure
        self._fake.keep(envelope)
        return "250 taken"
