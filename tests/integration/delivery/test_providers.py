"""The cases from the field, with the real channels against servers that misbehave on order."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock
from reconciler.states import AttentionState
from tests.support.delivering import START, Delivering
from worker.channels.registry import build_destinations
from worker.channels.services import Services
from worker.channels.testing import http_server as http
from worker.channels.testing.slack_server import CHANNEL, TOKEN, FakeSlack, on_method
from worker.channels.testing.smtp_server import DROP_AFTER_DATA, FakeSmtp
from worker.channels.testing.webhook_server import SECRET, FakeWebhook

SECOND = timedelta(seconds=1)
TIMEOUT = timedelta(milliseconds=300)


class Providers:
    """The three fakes and a house whose destinations lead to them."""

    def __init__(
        self, clock: FrozenClock, database: AsyncEngine, slack: FakeSlack, mail: FakeSmtp, hook: FakeWebhook
    ) -> None:
        self.clock = clock
        self.database = database
        self.slack, self.mail, self.hook = slack, mail, hook
        self.services = Services(clock=self.clock)

    def house(self, *names: str, **changes: dict[str, Any]) -> Delivering:
        tables: dict[str, dict[str, Any]] = {
            "slack": {"type": "slack", "token": TOKEN, "channel": CHANNEL, "api_url": self.slack.url},
            "mail": {
                "type": "email",
                "host": self.mail.host,
                "port": self.mail.port,
                "tls": "none",
                "from": "handbell@example.com",
                "to": ["oncall@example.com"],
            },
            "hook": {"type": "webhook", "url": self.hook.url, "secrets": [SECRET], "allow_private": True},
        }
        chosen = {name: {**tables[name], "timeout": TIMEOUT, **changes.get(name, {})} for name in tables}
        destinations = build_destinations(chosen, self.services)
        return Delivering(self.database, destinations, clock=self.clock, routed=names)


@pytest.fixture
async def providers(sqlite_engine: AsyncEngine) -> AsyncIterator[Providers]:
    clock = FrozenClock(START)
    async with AsyncExitStack() as stack:
        slack = await stack.enter_async_context(FakeSlack(clock=clock))
        mail = await stack.enter_async_context(FakeSmtp())
        hook = await stack.enter_async_context(FakeWebhook(clock=clock))
        setting = Providers(clock, sqlite_engine, slack, mail, hook)
        yield setting
        await setting.services.close()


@pytest.mark.parametrize("after", ["2", "Sun, 01 Mar 2026 12:00:02 GMT"])
async def test_slack_answers_429_once(providers: Providers, after: str) -> None:
    house = providers.house("slack", "mail")
    providers.slack.faults.append(on_method("chat.postMessage", http.answer(429, retry_after=after)))
    worker = house.engine()
    await house.see("a")

    await worker.run_due()
    assert len(providers.mail.mails) == 1
    await house.pass_time(worker, timedelta(seconds=1.9), timedelta(seconds=1.9))
    assert not providers.slack.messages
    await house.pass_time(worker, SECOND, SECOND)

    assert len(providers.slack.messages) == 1
    assert len(providers.mail.mails) == 1


async def test_mail_works_while_the_webhook_answers_500_five_times(providers: Providers) -> None:
    house = providers.house("mail", "hook")
    providers.hook.faults.extend([http.answer(500)] * 5)
    worker = house.engine()
    await house.see("a")

    await worker.run_due()
    await house.pass_time(worker, timedelta(minutes=3), 5 * SECOND)

    assert len(providers.mail.mails) == 1
    assert len(providers.hook.tries) == 6
    assert len({received.id for received in providers.hook.tries}) == 1
    assert len({received.timestamp for received in providers.hook.tries}) == 6
    assert all(received.is_verified for received in providers.hook.tries)


@pytest.mark.parametrize("fault", [http.DROP_AFTER_ACCEPT, http.HANG_AFTER_ACCEPT])
async def test_webhook_whose_answer_is_lost_is_told_again_under_the_same_id(
    providers: Providers, fault: http.HttpFault
) -> None:
    house = providers.house("hook")
    providers.hook.faults.append(fault)
    worker = house.engine()
    await house.see("a")

    await worker.run_due()
    await house.pass_time(worker, 10 * SECOND, 5 * SECOND)

    assert (len(providers.hook.tries), len(providers.hook.events)) == (2, 1)
    assert (await house.delivery())["status"] == "sent"


async def test_slack_whose_answer_is_lost_is_found_again(providers: Providers) -> None:
    house = providers.house("slack")
    providers.slack.faults.append(on_method("chat.postMessage", http.DROP_AFTER_ACCEPT))
    worker = house.engine()
    await house.see("a")

    await worker.run_due()
    await house.pass_time(worker, 10 * SECOND, SECOND)
    await house.see("a", AttentionState.RESOLVED)
    await worker.run_due()
    await house.pass_time(worker, 2 * SECOND, SECOND)

    (message,) = providers.slack.messages.values()
    assert message.edits == 1
    assert providers.slack.calls.count("chat.postMessage") == 1
    assert [row["status"] for row in await house.deliveries()] == ["sent", "sent"]


async def test_mail_whose_answer_is_lost_is_sent_once_more_under_the_same_message_id(providers: Providers) -> None:
    house = providers.house("mail")
    providers.mail.faults.extend([DROP_AFTER_DATA] * 3)
    worker = house.engine()
    await house.see("a")

    await worker.run_due()
    await house.pass_time(worker, timedelta(hours=1), timedelta(minutes=1))

    assert len(providers.mail.mails) == 2
    assert len({mail.message["Message-ID"] for mail in providers.mail.mails}) == 1
    assert (await house.delivery())["status"] == "dead"


async def test_resolved_observed_five_times_is_one_edit(providers: Providers) -> None:
    house = providers.house("slack", "mail", "hook")
    worker = house.engine()
    await house.see("a")
    await worker.run_due()

    for _ in range(5):
        await house.see("a", AttentionState.RESOLVED)
        await house.pass_time(worker, SECOND, SECOND)

    (message,) = providers.slack.messages.values()
    assert message.edits == 1
    assert "Resolved" in message.text
    opening, settled = (mail.message for mail in providers.mail.mails)
    assert settled["In-Reply-To"] == opening["Message-ID"]
    assert len(providers.hook.events) == 2


@pytest.mark.parametrize("trouble", ["archived", "revoked"])
async def test_archived_channel_or_revoked_token_uses_the_fallback(providers: Providers, trouble: str) -> None:
    if trouble == "archived":
        providers.slack.archived.add(CHANNEL)
    else:
        providers.slack.is_revoked = True
    house = providers.house("slack", slack={"fallback": ["mail"]})
    worker = house.engine(operator=["slack", "hook"])
    for name in ("a", "b", "c"):
        await house.see(name)
        await worker.run_due()

    await house.pass_time(worker, timedelta(minutes=4), timedelta(minutes=1))

    assert len(providers.mail.mails) == 3
    assert providers.slack.calls.count("chat.postMessage") == 1
    assert len(providers.hook.events) == 1
    assert len(await house.notices()) == 1


async def test_deleted_message_ends_its_edit(providers: Providers) -> None:
    house = providers.house("slack")
    worker = house.engine()
    await house.see("a")
    await worker.run_due()
    providers.slack.delete(next(iter(providers.slack.messages)))

    await house.see("a", AttentionState.RESOLVED)
    await house.pass_time(worker, timedelta(hours=1), timedelta(minutes=1))

    assert providers.slack.calls.count("chat.update") == 1
    settle = await house.delivery(purpose="settle")
    assert (settle["status"], settle["reason"]) == ("dead", "target_gone")
    assert (await house.destination("slack"))["broken_at"] is None


@pytest.mark.parametrize(
    "fault",
    [
        http.answer(401),
        http.answer(404),
        http.answer(429, retry_after="5"),
        http.answer(500),
        http.html(502),
        http.redirect("http://127.0.0.1:1/elsewhere"),
        http.DROP,
        http.HANG,
    ],
    ids=["401", "404", "429", "500", "502", "redirect", "drop", "hang"],
)
async def test_secret_of_a_webhook_url_is_nowhere_whatever_fails(
    providers: Providers, fault: http.HttpFault, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    house = providers.house("hook")
    providers.hook.faults.extend([fault] * 3)
    worker = house.engine(operator=["mail"])

    with caplog.at_level(logging.INFO):
        for name in ("a", "b", "c"):
            await house.see(name)
            await worker.run_due()
        await house.pass_time(worker, 30 * SECOND, 10 * SECOND)

    rows = [*await house.deliveries(), *await house.attempts(), *await house.decisions(), *await house.notices()]
    written = capfd.readouterr()
    mails = [mail.message.as_string() for mail in providers.mail.mails]
    assert "s3cret" not in "\n".join([*map(str, rows), *mails, caplog.text, written.out, written.err])


async def test_notice_goes_out_through_every_channel(providers: Providers) -> None:
    providers.hook.faults.append(http.answer(410))
    house = providers.house("hook")
    worker = house.engine(operator=["slack", "mail", "hook"])
    await house.see("a")

    await worker.run_due()

    (message,) = providers.slack.messages.values()
    assert "Destination hook refuses messages" in message.text
    assert "Destination hook refuses messages" in providers.mail.mails[0].message.as_string().replace("\n", " ")
    assert {row["status"] for row in await house.deliveries() if row["notice_id"]} == {"sent"}
