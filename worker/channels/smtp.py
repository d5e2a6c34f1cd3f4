"""The email channel: one mail per recipient over SMTP, threaded, with an honest outcome for every phase."""

import asyncio
import ssl
from datetime import timedelta
from email.headerregistry import Address
from email.utils import parseaddr
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Self

from aiosmtplib import SMTP
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

from config.errors import DependencyError, SettingsError
from worker.channels.mail import MailWriter, mail_writer
from worker.channels.option_fields import Template, Timeout
from worker.channels.outcomes import Outcome, Permanent, Sent, Temporary
from worker.channels.protocol import Message, SendContext, UnknownPolicy
from worker.channels.services import Services
from worker.channels.smtp_connections import SmtpConnections, SmtpServer
from worker.channels.smtp_outcomes import SMTP_ERRORS, Phase, outcome_of_error

TYPE = "email"

# Submission (RFC 6409), submission over TLS (RFC 8314), relay (RFC 5321).
DEFAULT_PORTS = {"starttls": 587, "tls": 465, "none": 25}


def check_address(value: str) -> str:
    """Return a bare mail address; raises ValueError for anything else (names, lists, control characters)."""
    try:
        address = Address(addr_spec=value)
    except (ValueError, IndexError):
        address = None
    if address is None or not value.isascii() or not address.username or not address.domain or " " in value:
        raise ValueError('must be a mail address such as "oncall@example.com", in ASCII')
    return value


def check_sender(value: str) -> str:
    """Return a sender, `agents@example.com` or `Agents <agents@example.com>`; raises ValueError otherwise."""
    name, address = parseaddr(value)
    if "=?" in value or any(ord(char) < 32 for char in value) or ("<" in value and not name):
        raise ValueError('must be a mail address, or "Name <address>"')
    check_address(address if name else value)
    return value


MailAddress = Annotated[str, AfterValidator(check_address)]
Sender = Annotated[str, AfterValidator(check_sender)]


class Options(BaseModel):
    """One mail for each recipient, answered in its thread when the request settles."""

    model_config = ConfigDict(extra="forbid")

    host: str = Field(min_length=1, description="The SMTP server's name or address.")
    port: int | None = Field(
        default=None, ge=1, le=65535, description="Its port. Unset: 587 for `starttls`, 465 for `tls`, 25 for `none`."
    )
    tls: Literal["starttls", "tls", "none"] = Field(
        default="starttls",
        description="How the connection is encrypted: `starttls` (ends where the server does not offer it), `tls` from "
        "the start, or `none`.",
    )
    ca_file: Path | None = Field(default=None, description="PEM file of the authority to trust. Unset: the system's.")
    username: str | None = Field(
        default=None, min_length=1, description="Whom to log in as, with `password`. Unset: no login."
    )
    password: SecretStr | None = Field(
        default=None, description="The password of `username`; never sent unencrypted, except to this machine."
    )
    sender: Sender = Field(
        alias="from", description='The sender, `"agents@example.com"` or `"Agents <agents@example.com>"`.'
    )
    to: list[MailAddress] = Field(
        min_length=1, description="The recipients' addresses, one mail and one delivery each."
    )
    timeout: Timeout = Field(
        default=timedelta(seconds=20),
        description="How long to wait for the server: once for everything up to the mail itself, once for the mail. "
        "The shorter, the more mails of a slow server have an unknown fate.",
    )
    template: Template | None = Field(
        default=None,
        description="A Jinja2 sentence that says a request, over the fields that slack.md lists, without HTML. "
        "Unset: the runtime's fixed summary.",
    )

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password go together: set both or neither")
        if self.tls == "none" and self.username is not None and not _is_this_machine(self.host):
            raise ValueError('the password would be sent unencrypted: use tls = "starttls" or "tls"')
        if len({address.lower() for address in self.to}) < len(self.to):
            raise ValueError("to: an address is listed twice")
        return self


class SmtpChannel:
    """Sends mails through one server; each recipient is a delivery of its own."""

    type = TYPE
    on_unknown = UnknownPolicy.RESEND_ONCE

    def __init__(self, recipients: tuple[str, ...], writer: MailWriter, server: SmtpServer, services: Services) -> None:
        self.recipients = recipients
        self._writer = writer
        self._server = server
        self._connections = SmtpConnections(server, services.clock)

    async def send(self, message: Message, context: SendContext) -> Outcome:
        """Mail the message; a message about something already mailed answers in its thread."""
        mail = self._writer.write(message, context)
        phase = Phase.ENVELOPE
        try:
            async with asyncio.timeout(self._server.timeout_seconds) as bound, self._connections.slot():
                connection = await self._connections.begin(self._writer.sender.addr_spec, context.recipient)
                phase = Phase.DATA
                bound.reschedule(asyncio.get_running_loop().time() + self._server.timeout_seconds)
                await self._hand_over(connection, mail)
        except SMTP_ERRORS as error:
            return outcome_of_error(error, phase)
        return Sent(self._writer.message_id(message.key))

    async def find(self, message: Message, context: SendContext) -> Outcome | None:
        """Return None: a mail server cannot be asked."""
        return None

    async def check(self) -> str:
        """Connect, encrypt and log in, without mailing anybody."""
        where = f"{self._server.host}:{self._server.port}"
        try:
            async with asyncio.timeout(self._server.timeout_seconds):
                connection = await self._connections.open()
                try:
                    await connection.noop()
                    await connection.quit()
                finally:
                    connection.close()
        except SMTP_ERRORS as error:
            raise _check_error(where, outcome_of_error(error, Phase.ENVELOPE)) from None
        encryption = "encrypted" if self._server.context else "not encrypted"
        login = "logged in" if self._server.username else "no login"
        return f"{where} answers, {encryption}, {login}"

    async def close(self) -> None:
        """Hang up; safe to call twice."""
        self._connections.close()

    async def _hand_over(self, connection: SMTP, mail: bytes) -> None:
        try:
            await connection.data(mail)
        except BaseException:
            connection.close()
            raise
        self._connections.give_back(connection)


def build(name: str, options: Options, services: Services) -> SmtpChannel:
    """Make the destination `name`; raises ValueError where `ca_file` cannot be used."""
    server = SmtpServer(
        host=options.host,
        port=options.port or DEFAULT_PORTS[options.tls],
        is_tls_from_start=options.tls == "tls",
        context=None if options.tls == "none" else _tls_context(options.ca_file, services.folder),
        username=options.username,
        password=options.password.get_secret_value() if options.password else None,
        timeout_seconds=options.timeout.total_seconds(),
    )
    display_name, address = parseaddr(options.sender)
    sender = Address(display_name=display_name, addr_spec=address)
    return SmtpChannel(tuple(options.to), mail_writer(sender, options.template), server, services)


def _tls_context(ca_file: Path | None, folder: Path) -> ssl.SSLContext:
    if ca_file is None:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=folder / ca_file)
    except OSError as error:
        raise ValueError(f"ca_file: {folder / ca_file} cannot be used: {error.strerror or 'not PEM'}") from None


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _check_error(where: str, outcome: Outcome) -> SettingsError | DependencyError:
    match outcome:
        case Permanent(reason):
            return SettingsError(f"{where} refuses us ({reason}): check host, port, tls, username and password")
        case Temporary(reason):
            return DependencyError(f"{where} does not answer as a mail server ({reason})")
        case _:
            return DependencyError(f"{where} does not answer")
