"""A mail server on the loopback that keeps what it gets: the demo's stand-in for a person's inbox."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage, Message
from typing import Any

from aiosmtpd.controller import Controller


@dataclass(slots=True)
class Mailbox:
    """The mails received so far, oldest first, and where the server listens."""

    port: int = 0
    mails: list[Message] = field(default_factory=list)

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802  # aiosmtpd's name
        """Keep the mail and accept it."""
        mail = message_from_bytes(envelope.content, _class=EmailMessage, policy=policy.default)
        self.mails.append(mail)
        return "250 kept"


@contextmanager
def open_mailbox() -> Iterator[Mailbox]:
    """Serve on a free port of 127.0.0.1 for the block, in a thread of its own."""
    mailbox = Mailbox()
    controller = Controller(mailbox, hostname="127.0.0.1", port=0)
    controller.start()
    try:
        assert isinstance(controller.server, asyncio.Server), "the server was started"
        mailbox.port = controller.server.sockets[0].getsockname()[1]
        yield mailbox
    finally:
        controller.stop()
