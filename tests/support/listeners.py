"""Two people's ways to be told, on loopback: a mail server and a receiver of webhooks, and what both have got."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from worker.channels.testing.smtp_server import FakeSmtp
from worker.channels.testing.webhook_server import SECRET, FakeWebhook

OPENED, SETTLED = "handbell.attention.opened", "handbell.attention.settled"


@dataclass(frozen=True)
class Listeners:
    """Where Handbell sends to; `opened` and `settled` count what each has got."""

    mailbox: FakeSmtp
    webhook: FakeWebhook

    def toml(self, store: Path, *, namespace: str = "prod") -> str:
        """Return a configuration with a Cayu store and both destinations, swept every second."""
        return f"""
[[sources]]
namespace = "{namespace}"
type = "cayu"
store = "sqlite:///{store}"
sweep_every = "1s"
head_every = "1s"

[channels.mail]
type = "email"
host = "127.0.0.1"
port = {self.mailbox.port}
tls = "none"
from = "agents@example.com"
to = ["oncall@example.com"]

[channels.hook]
type = "webhook"
url = "{self.webhook.url}"
secrets = ["{SECRET}"]
allow_private = true

[delivery]
backoff_base = "1s"
lease = "5s"
"""

    def events(self, kind: str) -> list[str]:
        """Return the ids of the webhook's events of one type, each counted once."""
        return [event_id for event_id, event in self.webhook.events.items() if event["type"] == kind]

    def mails(self, *, is_settled: bool) -> list[str]:
        """Return the Message-IDs of the openings, or of the settled messages (which are replies)."""
        mails = [mail.message for mail in self.mailbox.mails]
        return [str(mail["Message-ID"]) for mail in mails if (mail["In-Reply-To"] is not None) is is_settled]

    def has_opened(self) -> bool:
        """Say whether both were told that somebody waits."""
        return bool(self.events(OPENED) and self.mails(is_settled=False))

    def has_settled(self) -> bool:
        """Say whether both were told that it is over."""
        return bool(self.events(SETTLED) and self.mails(is_settled=True))

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return (openings, settled messages) by destination, as they arrived."""
        return {
            "hook": (len(self.events(OPENED)), len(self.events(SETTLED))),
            "mail": (len(self.mails(is_settled=False)), len(self.mails(is_settled=True))),
        }


ONCE_EACH = {"hook": (1, 1), "mail": (1, 1)}
OPENED_ONCE = {"hook": (1, 0), "mail": (1, 0)}


@asynccontextmanager
async def listening() -> AsyncIterator[Listeners]:
    """Listen for the time of a block."""
    async with FakeSmtp() as mailbox, FakeWebhook() as webhook:
        yield Listeners(mailbox, webhook)


@pytest.fixture
async def listeners() -> AsyncIterator[Listeners]:
    """Give both."""
    async with listening() as both:
        yield both
