"""Slack against a real HTTP server that speaks its Web API: edits, threads, look-ups, limits, honest outcomes."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from config.clock import FrozenClock
from config.errors import DependencyError, SettingsError
from reconciler.states import AttentionState
from worker.channels.outcomes import FailureReason, Outcome, Permanent, Sent, Temporary, Unknown
from worker.channels.protocol import Channel, Message, SentBefore, UnknownPolicy
from worker.channels.registry import build_destinations
from worker.channels.services import Services
from worker.channels.testing import http_server as http
from worker.channels.testing.samples import HOSTILE_NAMES, NOW, context, item, message, sent, settled
from worker.channels.testing.slack_server import CHANNEL, TOKEN, FakeSlack, SlackMessage, on_method, slack_error

TIMEOUT = timedelta(milliseconds=300)


@dataclass
class Setting:
    slack: FakeSlack
    services: Services
    sent: list[SentBefore] = field(default_factory=list)

    def channel(self, **keys: Any) -> Channel:
        table = {"type": "slack", "token": TOKEN, "channel": CHANNEL, "api_url": self.slack.url, "timeout": TIMEOUT}
        return build_destinations({"ops": table | keys}, self.services)[0].channel

    def hook(self) -> Channel:
        table = {"type": "slack-webhook", "url": self.slack.hook_url, "timeout": TIMEOUT}
        return build_destinations({"ops": table}, self.services)[0].channel

    async def tell(self, channel: Channel, told: Message) -> Outcome:
        outcome = await channel.send(told, context("ops", sent_before=tuple(self.sent)))
        if isinstance(outcome, Sent):
            self.sent.append(sent(outcome.provider_ref, purpose=told.purpose, key=told.key))
        return outcome

    @property
    def messages(self) -> list[SlackMessage]:
        return list(self.slack.messages.values())


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    clock = FrozenClock(NOW)
    services = Services(clock=clock)
    async with FakeSlack(clock=clock) as slack:
        yield Setting(slack, services)
        await services.close()


def shown(found: SlackMessage) -> str:
    return json.dumps([found.text, *found.blocks], ensure_ascii=False)


async def test_opening_is_posted_once_with_its_key_as_metadata(setting: Setting) -> None:
    channel = setting.channel()

    outcome = await setting.tell(channel, message(footer="You are on call."))

    (found,) = setting.messages
    assert outcome == Sent(f"{CHANNEL}:{found.ts}")
    assert channel.on_unknown is UnknownPolicy.LOOK_UP
    assert found.metadata == {"event_type": "handbell_message", "event_payload": {"key": "a" * 32}}
    assert found.text == "Tool approval required. (billing)"
    assert "<https://agents.example.com/sessions/s-1?tab=a&amp;x=1|Open>" in shown(found)
    assert "You are on call." in shown(found)


async def test_reminders_go_into_the_thread_and_settle_edits_all_of_them(setting: Setting) -> None:
    channel = setting.channel()
    await setting.tell(channel, message())
    await setting.tell(channel, message(purpose="reminder:1", key="b" * 32))
    await setting.tell(channel, message(purpose="escalation:1", key="c" * 32))

    outcome = await channel.send(
        message(settled(AttentionState.EXPIRED), purpose="settle", key="d" * 32),
        context("ops", sent_before=tuple(setting.sent)),
    )

    opening, *others = setting.messages
    assert outcome == Sent(f"{CHANNEL}:{opening.ts}")
    assert [other.thread_ts for other in others] == [opening.ts, opening.ts]
    assert all(found.edits == 1 and "Expired: Tool approval required." in shown(found) for found in setting.messages)
    assert [found.metadata["event_payload"]["key"] for found in setting.messages] == ["a" * 32, "b" * 32, "c" * 32]


async def test_settle_whose_targets_are_gone_ends_there(setting: Setting) -> None:
    channel = setting.channel()
    await setting.tell(channel, message())
    await setting.tell(channel, message(purpose="reminder:1", key="b" * 32))
    settle = message(settled(), purpose="settle", key="d" * 32)

    setting.slack.delete(setting.messages[0].ts)
    one_left = await channel.send(settle, context("ops", sent_before=tuple(setting.sent)))
    setting.slack.delete(setting.messages[0].ts)
    none_left = await channel.send(settle, context("ops", sent_before=tuple(setting.sent)))
    never_any = await channel.send(settle, context("ops", sent_before=(sent(None),)))

    assert isinstance(one_left, Sent)
    assert none_left == never_any == Permanent(FailureReason.TARGET_GONE)


async def test_settle_is_repeated_until_every_message_shows_it(setting: Setting) -> None:
    channel = setting.channel()
    await setting.tell(channel, message())
    await setting.tell(channel, message(purpose="reminder:1", key="b" * 32))
    settle = message(settled(), purpose="settle", key="d" * 32)
    before = context("ops", sent_before=tuple(setting.sent))

    setting.slack.faults.append(on_method("chat.update", http.DROP_AFTER_ACCEPT))
    assert await channel.send(settle, before) == Temporary(FailureReason.CONNECTION_LOST)
    setting.slack.faults.append(on_method("chat.update", http.answer(429, retry_after="3")))
    assert await channel.send(settle, before) == Temporary(FailureReason.RATE_LIMITED, timedelta(seconds=3))

    assert isinstance(await channel.send(settle, before), Sent)
    assert all("Resolved" in found.text for found in setting.messages)


async def test_reminder_of_a_deleted_thread_is_posted_in_the_channel(setting: Setting) -> None:
    channel = setting.channel()
    await setting.tell(channel, message())
    setting.slack.delete(setting.messages[0].ts)

    assert isinstance(await setting.tell(channel, message(purpose="reminder:1", key="b" * 32)), Sent)
    assert setting.messages[0].thread_ts is None


@pytest.mark.parametrize("fault", [http.HANG_AFTER_ACCEPT, http.DROP_AFTER_ACCEPT, http.html(502, accepts=True)])
async def test_message_whose_answer_was_lost_is_found_again(setting: Setting, fault: http.HttpFault) -> None:
    channel = setting.channel()
    await setting.tell(channel, message())
    for told in (message(key="b" * 32), message(purpose="reminder:1", key="c" * 32)):
        setting.slack.faults.append(fault)
        assert isinstance(await setting.tell(channel, told), Unknown)

        found = await channel.find(told, context("ops", sent_before=tuple(setting.sent)))

        assert found == Sent(f"{CHANNEL}:{setting.messages[-1].ts}")
    assert await channel.find(message(key="9" * 32), context("ops")) is None


async def test_lookup_reads_every_page_and_only_so_far_back(setting: Setting) -> None:
    channel = setting.channel()
    for number in range(250):
        ts = f"{NOW.timestamp() - number:.6f}"
        key = f"{number:032x}"
        metadata = {"event_type": "handbell_message", "event_payload": {"key": key}}
        setting.slack.messages[ts] = SlackMessage(CHANNEL, ts, None, "x", (), metadata)

    assert isinstance(await channel.find(message(key=f"{249:032x}"), context("ops")), Sent)
    assert await channel.find(message(key=f"{250:032x}"), context("ops")) is None
    assert setting.slack.calls.count("conversations.history") > 3


async def test_lookup_reaches_back_to_the_first_possible_try(setting: Setting) -> None:
    """A dead letter that a person has tried again after a week is found, not posted a second time."""
    sent_at = NOW - timedelta(days=7)
    told = message()
    metadata = {"event_type": "handbell_message", "event_payload": {"key": told.key}}
    ts = f"{sent_at.timestamp():.6f}"
    setting.slack.messages[ts] = SlackMessage(CHANNEL, ts, None, "x", (), metadata)

    found = await setting.channel().find(told, replace(context("ops"), since=sent_at))

    assert isinstance(found, Sent)


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (slack_error("missing_scope"), Temporary(FailureReason.UNAUTHORIZED)),
        (slack_error("fatal_error"), Temporary(FailureReason.SERVER_ERROR)),
        (http.answer(429, retry_after="30"), Temporary(FailureReason.RATE_LIMITED, timedelta(seconds=30))),
        (http.HANG, Temporary(FailureReason.TIMED_OUT)),
    ],
)
async def test_lookup_that_failed_is_not_taken_for_absence(
    setting: Setting, fault: http.HttpFault, outcome: Outcome
) -> None:
    setting.slack.faults.append(fault)

    assert await setting.channel().find(message(), context("ops")) == outcome


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (http.answer(429, retry_after="2"), Temporary(FailureReason.RATE_LIMITED, timedelta(seconds=2))),
        (
            http.answer(429, retry_after="Sat, 14 Mar 2026 09:30:20 GMT"),
            Temporary(FailureReason.RATE_LIMITED, timedelta(seconds=20)),
        ),
        (slack_error("ratelimited"), Temporary(FailureReason.RATE_LIMITED)),
        (http.answer(503, retry_after="5"), Temporary(FailureReason.SERVER_ERROR, timedelta(seconds=5))),
        (http.html(500), Temporary(FailureReason.SERVER_ERROR)),
        (http.html(200), Unknown(FailureReason.BAD_ANSWER)),
        (http.answer(200, "[1]"), Unknown(FailureReason.BAD_ANSWER)),
        (http.HttpFault(body="{", content_type="application/json"), Unknown(FailureReason.BAD_ANSWER)),
        (http.HttpFault(body='{"ok":true}', content_type="application/json"), Unknown(FailureReason.BAD_ANSWER)),
        (http.redirect("http://127.0.0.1:1/"), Permanent(FailureReason.REDIRECTED)),
        (http.redirect("/api/chat.postMessage", 307), Permanent(FailureReason.REDIRECTED)),
        (http.HANG, Unknown(FailureReason.TIMED_OUT)),
        (http.DROP, Unknown(FailureReason.CONNECTION_LOST)),
        (slack_error("is_archived"), Permanent(FailureReason.DESTINATION_GONE)),
        (slack_error("token_revoked"), Permanent(FailureReason.UNAUTHORIZED)),
        (slack_error("invalid_blocks"), Permanent(FailureReason.REJECTED)),
        (slack_error("internal_error"), Unknown(FailureReason.SERVER_ERROR)),
    ],
)
async def test_answer_has_its_outcome(setting: Setting, fault: http.HttpFault, outcome: Outcome) -> None:
    setting.slack.faults.append(fault)

    assert await setting.channel().send(message(), context("ops")) == outcome
    assert setting.messages == []


async def test_slow_answer_is_waited_for(setting: Setting) -> None:
    setting.slack.faults.append(http.slow(0.05))

    assert isinstance(await setting.channel().send(message(), context("ops")), Sent)


async def test_archived_channel_and_revoked_token_are_permanent(setting: Setting) -> None:
    setting.slack.archived.add(CHANNEL)
    assert await setting.channel().send(message(), context("ops")) == Permanent(FailureReason.DESTINATION_GONE)
    setting.slack.is_revoked = True
    assert await setting.channel().send(message(), context("ops")) == Permanent(FailureReason.UNAUTHORIZED)


async def test_unreachable_slack_is_temporary(setting: Setting) -> None:
    channel = setting.channel(api_url="http://127.0.0.1:1/api/")

    assert await channel.send(message(), context("ops")) == Temporary(FailureReason.UNREACHABLE)
    with pytest.raises(DependencyError):
        await channel.check()


async def test_proxy_of_the_environment_is_not_used(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert isinstance(await setting.channel().send(message(), context("ops")), Sent)
    assert isinstance(await setting.hook().send(message(), context("ops")), Sent)


async def test_check_says_who_we_are_and_what_is_missing(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await setting.channel().check() == f"{CHANNEL} as handbell of Fake"
    monkeypatch.setattr("worker.channels.testing.slack_server.SCOPES", "chat:write")
    assert (await setting.channel().check()).endswith("without a history scope a lost answer becomes a dead letter")
    with pytest.raises(SettingsError, match="refuses the token"):
        await setting.channel(token="xoxb-other").check()


async def test_name_pings_nobody_and_links_nowhere(setting: Setting) -> None:
    name = "<!channel> <https://evil.example|Approve>"

    await setting.channel().send(message(item(agent_name=name, requester=name, namespace=name)), context("ops"))

    text = shown(setting.messages[0])
    assert "&lt;!channel&gt; &lt;https://evil.example|Approve&gt;" in text
    assert "<!" not in text
    assert "<https://evil" not in text
    assert '"verbatim": true' in text


@pytest.mark.parametrize("purpose", ["open", "digest:1"])
async def test_whatever_is_said_keeps_slacks_limits(setting: Setting, purpose: str) -> None:
    long = item(summary="&" * 9000, link="https://x.example/?" + "&" * 1900)
    for name in HOSTILE_NAMES:
        items = [item(agent_name=name), long] * (100 if purpose == "digest:1" else 1)
        told = message(*items[: 1 if purpose == "open" else None], purpose=purpose, footer=name * 20)
        for channel in (setting.channel(), setting.hook()):
            assert isinstance(await channel.send(told, context("ops")), Sent)


async def test_digest_that_is_too_long_says_how_many_are_left_out(setting: Setting) -> None:
    told = message(*[item(agent_name=f"agent-{number}") for number in range(300)], purpose="digest:1")

    await setting.channel().send(told, context("ops"))

    assert "300 requests: 300 waiting." in shown(setting.messages[0])
    assert " more…" in shown(setting.messages[0])


async def test_digest_is_edited_to_show_each_state(setting: Setting) -> None:
    channel = setting.channel()
    await setting.tell(channel, message(item(agent_name="one"), item(agent_name="two"), purpose="digest:1"))

    told = message(settled(agent_name="one"), item(agent_name="two"), purpose="settle", key="b" * 32)
    await channel.send(told, context("ops", sent_before=tuple(setting.sent)))

    (found,) = setting.messages
    assert "2 requests: 1 waiting, 1 resolved." in found.text
    assert "• Resolved: Tool approval required. · one for dana · prod" in shown(found)
    assert "• Waiting: Tool approval required. · two for dana · prod" in shown(found)


async def test_webhook_of_slack_tells_the_end_in_a_message_of_its_own(setting: Setting) -> None:
    channel = setting.hook()
    assert channel.on_unknown is UnknownPolicy.GIVE_UP

    assert await channel.send(message(), context("ops")) == Sent(None)
    settle = message(settled(), purpose="settle", key="b" * 32)
    assert await channel.send(settle, context("ops", sent_before=(sent(None),))) == Sent(None)

    assert [hooked["text"] for hooked in setting.slack.hooked] == [
        "Tool approval required. (billing)",
        "Resolved: Tool approval required. (billing)",
    ]
