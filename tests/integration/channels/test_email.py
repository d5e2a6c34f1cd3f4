"""Mails against a real SMTP server: honest outcomes, reused connections, threads, nothing injected."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from config.clock import FrozenClock
from config.errors import DependencyError, SettingsError
from reconciler.states import AttentionState
from worker.channels.outcomes import FailureReason, Outcome, Permanent, Sent, Temporary, Unknown
from worker.channels.protocol import Channel, UnknownPolicy
from worker.channels.registry import build_destinations
from worker.channels.services import Services
from worker.channels.testing.certificates import server_context
from worker.channels.testing.samples import NOW, context, item, message, sent, settled
from worker.channels.testing.smtp_server import (
    CLOSING,
    DROP_AFTER_DATA,
    DROP_AT_MAIL,
    HANG_AFTER_DATA,
    FakeSmtp,
    SmtpFault,
    SmtpStage,
)

ONCALL, LEAD = "oncall@example.com", "lead@example.com"


def channel_to(
    server: FakeSmtp, *, clock: FrozenClock | None = None, folder: Path | None = None, **keys: Any
) -> Channel:
    table = {
        "type": "email",
        "host": server.host,
        "port": server.port,
        "tls": "none",
        "from": "Agents <agents@example.com>",
        "to": [ONCALL, LEAD],
        "timeout": timedelta(milliseconds=400),
    } | keys
    services = Services(clock=clock or FrozenClock(NOW), folder=folder or Path())
    return build_destinations({"mail": table}, services)[0].channel


async def test_mail_says_what_waits_in_text_and_html_and_asks_for_no_answer() -> None:
    async with FakeSmtp() as server:
        channel = channel_to(server)

        outcome = await channel.send(
            message(item(agent_name="<b>billing</b>"), footer="You are on call."), context(ONCALL)
        )
        await channel.close()

    mail = server.mails[0].message
    assert outcome == Sent(f"<{'a' * 32}@example.com>")
    assert channel.on_unknown is UnknownPolicy.RESEND_ONCE
    assert (server.mails[0].sender, server.mails[0].recipients) == ("agents@example.com", (ONCALL,))
    assert (mail["From"], mail["To"], mail["Message-ID"]) == (
        "Agents <agents@example.com>",
        ONCALL,
        outcome.provider_ref,
    )
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Subject"] == "Tool approval required. (<b>billing</b>)"
    assert mail["Date"].datetime == NOW
    text, html = (part.get_content() for part in mail.iter_parts())
    assert "Agent: <b>billing</b>" in text
    assert "https://agents.example.com/sessions/s-1?tab=a&x=1" in text
    assert "&lt;b&gt;billing&lt;/b&gt;" in html
    assert "You are on call." in html


async def test_later_mails_answer_in_the_thread_under_one_subject() -> None:
    async with FakeSmtp() as server:
        channel = channel_to(server)
        opening = await channel.send(message(), context(ONCALL))
        assert isinstance(opening, Sent)
        before = (sent(opening.provider_ref),)
        await channel.send(message(purpose="reminder:1", key="b" * 32), context(ONCALL, sent_before=before))
        before += (sent(None, purpose="reminder:1", key="b" * 32),)

        await channel.send(
            message(settled(AttentionState.CANCELLED), purpose="settle", key="c" * 32),
            context(ONCALL, sent_before=before),
        )
        await channel.close()

    first, reminder, settle = (received.message for received in server.mails)
    assert reminder["In-Reply-To"] == settle["In-Reply-To"] == first["Message-ID"]
    assert settle["References"] == f"{first['Message-ID']} {reminder['Message-ID']}"
    assert reminder["Subject"] == settle["Subject"] == f"Re: {first['Subject']}"
    assert "Cancelled: Tool approval required." in settle.get_body(("plain",)).get_content()


async def test_one_connection_carries_many_mails() -> None:
    async with FakeSmtp() as server:
        channel = channel_to(server)
        for number in range(5):
            assert isinstance(await channel.send(message(key=f"{number:032x}"), context(ONCALL)), Sent)
        await channel.close()

    assert (len(server.mails), server.connections) == (5, 1)


async def test_parallel_mails_use_few_connections_and_all_arrive() -> None:
    async with FakeSmtp() as server:
        channel = channel_to(server)
        outcomes = await asyncio.gather(
            *(channel.send(message(key=f"{number:032x}"), context(ONCALL)) for number in range(20))
        )
        await channel.close()

    assert all(isinstance(outcome, Sent) for outcome in outcomes)
    assert len({received.message["Message-ID"] for received in server.mails}) == 20
    assert server.connections <= 4


async def test_connection_that_the_server_closed_is_opened_again() -> None:
    async with FakeSmtp() as server:
        channel = channel_to(server)
        await channel.send(message(), context(ONCALL))

        server.hang_up()
        assert isinstance(await channel.send(message(key="b" * 32), context(ONCALL)), Sent)
        server.faults.append(CLOSING)
        assert isinstance(await channel.send(message(key="c" * 32), context(ONCALL)), Sent)
        await channel.close()

    assert (len(server.mails), server.connections) == (3, 3)


async def test_connection_that_lay_idle_is_not_used_again() -> None:
    clock = FrozenClock(NOW)
    async with FakeSmtp() as server:
        channel = channel_to(server, clock=clock)
        await channel.send(message(), context(ONCALL))
        await clock.advance(timedelta(minutes=2))

        await channel.send(message(key="b" * 32), context(ONCALL))
        await channel.close()

    assert (len(server.mails), server.connections) == (2, 2)


@pytest.mark.parametrize(
    ("fault", "outcome", "mails"),
    [
        (DROP_AT_MAIL, Temporary(FailureReason.CONNECTION_LOST), 0),
        (CLOSING, Temporary(FailureReason.SERVER_ERROR), 0),
        (SmtpFault(SmtpStage.MAIL, is_hanging=True), Temporary(FailureReason.TIMED_OUT), 0),
        (SmtpFault(SmtpStage.MAIL, "553 5.1.8 sender"), Permanent(FailureReason.REJECTED), 0),
        (SmtpFault(SmtpStage.RCPT, "450 4.2.0 greylisted"), Temporary(FailureReason.SERVER_ERROR), 0),
        (SmtpFault(SmtpStage.RCPT, "550 5.1.1 nobody"), Permanent(FailureReason.RECIPIENT_REFUSED), 0),
        (SmtpFault(SmtpStage.RCPT), Temporary(FailureReason.CONNECTION_LOST), 0),
        (SmtpFault(SmtpStage.DATA, "451 4.3.0 later"), Temporary(FailureReason.SERVER_ERROR), 0),
        (SmtpFault(SmtpStage.DATA, "554 5.7.1 spam"), Permanent(FailureReason.REJECTED), 0),
        (SmtpFault(SmtpStage.DATA, "421 4.3.2 closing"), Temporary(FailureReason.SERVER_ERROR), 0),
        (DROP_AFTER_DATA, Unknown(FailureReason.CONNECTION_LOST), 1),
        (HANG_AFTER_DATA, Unknown(FailureReason.TIMED_OUT), 1),
    ],
)
async def test_outcome_depends_on_how_far_the_mail_came(fault: SmtpFault, outcome: Outcome, mails: int) -> None:
    async with FakeSmtp() as server:
        channel = channel_to(server)
        server.faults.append(fault)

        assert await channel.send(message(), context(ONCALL)) == outcome
        assert len(server.mails) == mails
        assert isinstance(await channel.send(message(key="b" * 32), context(ONCALL)), Sent)
        await channel.close()


async def test_a_refused_recipient_does_not_harm_the_others() -> None:
    async with FakeSmtp() as server:
        channel = channel_to(server)
        server.refused[ONCALL] = "550 5.1.1 nobody"

        outcomes = [await channel.send(message(), context(recipient)) for recipient in channel.recipients]
        await channel.close()

    assert outcomes[0] == Permanent(FailureReason.RECIPIENT_REFUSED)
    assert isinstance(outcomes[1], Sent)
    assert [received.recipients for received in server.mails] == [(LEAD,)]


async def test_the_same_mail_sent_twice_has_the_same_id() -> None:
    async with FakeSmtp() as server:
        channel = channel_to(server)
        server.faults.append(DROP_AFTER_DATA)
        await channel.send(message(), context(ONCALL))
        await channel.send(message(), context(ONCALL, attempt=2))
        await channel.close()

    assert len({received.message["Message-ID"] for received in server.mails}) == 1


@pytest.mark.parametrize("is_tls_from_start", [True, False])
async def test_mail_goes_encrypted_and_logged_in_to_a_server_that_is_trusted(
    tmp_path: Path, is_tls_from_start: bool
) -> None:
    server_side, authority = server_context(tmp_path)
    keys = {"tls": "tls" if is_tls_from_start else "starttls", "ca_file": authority.name, "username": "robot"}
    async with FakeSmtp(login=("robot", "right"), context=server_side, is_tls_from_start=is_tls_from_start) as server:
        channel = channel_to(server, folder=tmp_path, password="right", **keys)
        assert isinstance(await channel.send(message(), context(ONCALL)), Sent)
        assert await channel.check() == f"127.0.0.1:{server.port} answers, encrypted, logged in"
        wrong = channel_to(server, folder=tmp_path, password="wrong", **keys)
        assert await wrong.send(message(), context(ONCALL)) == Permanent(FailureReason.UNAUTHORIZED)
        with pytest.raises(SettingsError, match="refuses us"):
            await wrong.check()
        stranger = channel_to(server, folder=tmp_path, password="right", **(keys | {"ca_file": None}))
        assert await stranger.send(message(), context(ONCALL)) == Temporary(FailureReason.UNREACHABLE)
        await channel.close()

    assert len(server.mails) == 1


async def test_without_starttls_nothing_is_said_in_clear() -> None:
    async with FakeSmtp() as server:
        channel = channel_to(server, tls="starttls")

        assert await channel.send(message(), context(ONCALL)) == Permanent(FailureReason.UNREACHABLE)

    assert server.mails == []


async def test_server_that_is_not_there_is_temporary() -> None:
    async with FakeSmtp() as server:
        channel = channel_to(server)

    assert await channel.send(message(), context(ONCALL)) == Temporary(FailureReason.UNREACHABLE)
    with pytest.raises(DependencyError, match="does not answer"):
        await channel.check()


@pytest.mark.parametrize(
    "name",
    ["billing\r\nBcc: victim@example.com", "=?utf-8?q?x=0D=0ABcc:_victim@example.com?=", "a\n\nb", "\r\n.\r\nQUIT"],
)
async def test_name_adds_no_header_and_ends_no_mail(name: str) -> None:
    async with FakeSmtp() as server:
        channel = channel_to(server, template="{{ agent_name }} asks")

        assert isinstance(await channel.send(message(item(agent_name=name, requester=name)), context(ONCALL)), Sent)
        await channel.close()

    assert server.mails[0].recipients == (ONCALL,)
    assert {key.lower() for key in server.mails[0].message} == {
        "from",
        "to",
        "subject",
        "date",
        "message-id",
        "auto-submitted",
        "x-auto-response-suppress",
        "mime-version",
        "content-type",
    }
