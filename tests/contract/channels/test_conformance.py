"""One suite, every channel."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from io import StringIO

import pytest

from config.clock import FrozenClock
from worker.channels.protocol import Channel
from worker.channels.registry import CHANNEL_TYPES, build_destinations
from worker.channels.services import Services
from worker.channels.testing import http_server, samples, slack_server
from worker.channels.testing.conformance import CHECKS, Subject
from worker.channels.testing.slack_server import CHANNEL, TOKEN, FakeSlack
from worker.channels.testing.smtp_server import (
    CLOSING,
    DROP_AFTER_DATA,
    HANG_AFTER_DATA,
    FakeSmtp,
    SmtpFault,
    SmtpStage,
)
from worker.channels.testing.webhook_server import SECRET, FakeWebhook

TIMEOUT = timedelta(milliseconds=300)
HTTP_FAULTS = (
    http_server.answer(429, retry_after="2"),
    http_server.answer(500, "x"),
    http_server.html(503),
    http_server.answer(404),
    http_server.answer(410),
    http_server.redirect("http://127.0.0.1:1/elsewhere"),
    http_server.HANG_AFTER_ACCEPT,
    http_server.DROP_AFTER_ACCEPT,
)
MENTIONS_AND_LINKS = (r"<[!@#]", r"<https://evil", r"\|Approve>")


def build(table: dict[str, object], services: Services) -> Channel:
    return build_destinations({"dest": table}, services)[0].channel


@asynccontextmanager
async def console() -> AsyncIterator[Subject]:
    output = StringIO()
    channel = build({"type": "console"}, Services(console=output))
    yield Subject(channel, output.getvalue, forbidden=(r"\r", r"\x1b", r"(?m)^(?!\[dest\]|  - )."))


@asynccontextmanager
async def email() -> AsyncIterator[Subject]:
    async with FakeSmtp(login=("robot", "p4ssw0rd")) as server:
        table = {
            "type": "email",
            "host": server.host,
            "port": server.port,
            "tls": "none",
            "username": "robot",
            "password": "p4ssw0rd",
            "from": "Agents <agents@example.com>",
            "to": ["oncall@example.com", "lead@example.com"],
            "timeout": TIMEOUT,
        }
        faults = (
            DROP_AFTER_DATA,
            HANG_AFTER_DATA,
            CLOSING,
            SmtpFault(SmtpStage.MAIL, "530 5.7.0 login first"),
            SmtpFault(SmtpStage.RCPT, "550 5.1.1 nobody"),
            SmtpFault(SmtpStage.DATA, "451 4.3.0 later"),
        )
        channel = build(table, Services())
        yield Subject(
            channel,
            lambda: "\n".join(readable(mail.message) for mail in server.mails),
            break_next=[partial(server.faults.append, fault) for fault in faults],
            secrets=("p4ssw0rd",),
            forbidden=(
                r"(?im)^bcc:",
                r"(?im)^subject: urgent",
                r"(?m)^html: .*<script",
                r'(?m)^html: .*href="https://evil',
            ),
        )
        await channel.close()


def readable(message: object) -> str:
    headers = "\n".join(f"{name}: {value}" for name, value in message.items())
    bodies = [
        "\n".join(f"{part.get_content_subtype()}: {line}" for line in part.get_content().splitlines())
        for part in message.walk()
        if not part.is_multipart()
    ]
    return "\n".join([headers, *bodies])


@asynccontextmanager
async def slack() -> AsyncIterator[Subject]:
    clock = FrozenClock(samples.NOW)
    services = Services(clock=clock)
    async with FakeSlack(clock=clock) as server:
        table = {
            "type": "slack",
            "token": TOKEN,
            "channel": CHANNEL,
            "api_url": server.url,
            "timeout": TIMEOUT,
        }
        errors = ("is_archived", "token_revoked", "ratelimited", "fatal_error", "new_word")
        faults = [*HTTP_FAULTS, *map(slack_server.slack_error, errors)]
        yield Subject(
            build(table, services),
            lambda: json.dumps([[m.text, *m.blocks] for m in server.messages.values()], ensure_ascii=False),
            break_next=[partial(server.faults.append, fault) for fault in faults],
            secrets=(TOKEN,),
            forbidden=MENTIONS_AND_LINKS,
        )
        await services.close()


@asynccontextmanager
async def slack_webhook() -> AsyncIterator[Subject]:
    services = Services(clock=FrozenClock(samples.NOW))
    async with FakeSlack() as server:
        table = {"type": "slack-webhook", "url": server.hook_url, "timeout": TIMEOUT}
        yield Subject(
            build(table, services),
            lambda: json.dumps(server.hooked, ensure_ascii=False),
            break_next=[partial(server.faults.append, fault) for fault in HTTP_FAULTS],
            secrets=("s3cret-in-the-url",),
            forbidden=MENTIONS_AND_LINKS,
        )
        await services.close()


@asynccontextmanager
async def webhook() -> AsyncIterator[Subject]:
    clock = FrozenClock(samples.NOW)
    services = Services(clock=clock)
    async with FakeWebhook(clock=clock) as server:
        table = {
            "type": "webhook",
            "url": server.url,
            "secrets": [SECRET],
            "allow_private": True,
            "timeout": TIMEOUT,
        }
        yield Subject(
            build(table, services),
            lambda: "\n".join(received.body for received in server.tries if json.loads(received.body)),
            break_next=[partial(server.faults.append, fault) for fault in HTTP_FAULTS],
            secrets=("s3cret-in-the-url", SECRET),
            forbidden=(r"\\[rn]", r"\r"),
        )
        await services.close()


SUBJECTS = {
    "console": console,
    "email": email,
    "slack": slack,
    "slack-webhook": slack_webhook,
    "webhook": webhook,
}


def test_every_built_in_channel_is_a_subject() -> None:
    assert SUBJECTS.keys() == CHANNEL_TYPES.built_in.keys()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", SUBJECTS)
async def test_channel_keeps_the_promise(kind: str, check: Callable[[Subject], Awaitable[None]]) -> None:
    async with SUBJECTS[kind]() as subject:
        await check(subject)
