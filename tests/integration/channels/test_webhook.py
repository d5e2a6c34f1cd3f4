"""Webhooks against a real receiver that verifies them: one id, fresh signatures, vetted addresses, honest outcomes."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import ClientError

from config.clock import FrozenClock
from config.errors import DependencyError, SettingsError
from reconciler.states import AttentionState
from worker.channels.outcomes import FailureReason, Outcome, Permanent, Sent, Temporary, Unknown
from worker.channels.protocol import Channel, UnknownPolicy
from worker.channels.registry import build_destinations
from worker.channels.services import Services
from worker.channels.testing import http_server as http
from worker.channels.testing.samples import HOSTILE_NAMES, NOW, context, item, message, sent, settled
from worker.channels.testing.webhook_server import SECRET, FakeWebhook
from worker.channels.webhook_event import MAX_BODY_BYTES

OTHER_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


@dataclass
class Setting:
    receiver: FakeWebhook
    services: Services
    clock: FrozenClock

    def channel(self, **keys: Any) -> Channel:
        table = {
            "type": "webhook",
            "url": self.receiver.url,
            "secrets": [SECRET],
            "allow_private": True,
            "timeout": timedelta(milliseconds=300),
        }
        return build_destinations({"hook": table | keys}, self.services)[0].channel


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    clock = FrozenClock(NOW)
    services = Services(clock=clock)
    async with FakeWebhook(clock=clock) as receiver:
        yield Setting(receiver, services, clock)
        await services.close()


async def test_event_is_content_free_and_complete(setting: Setting) -> None:
    channel = setting.channel()

    outcome = await channel.send(message(footer="You are on call."), context("hook"))

    assert outcome == Sent("msg_" + "a" * 32)
    assert channel.on_unknown is UnknownPolicy.RESEND
    assert setting.receiver.events == {
        "msg_" + "a" * 32: {
            "type": "handbell.attention.opened",
            "timestamp": "2026-03-14T09:25:00Z",
            "data": {
                "purpose": "open",
                "number": None,
                "footer": "You are on call.",
                "namespace": "prod",
                "attention_id": item().attention_id,
                "kind": "tool_approval",
                "summary": "Tool approval required.",
                "state": "active",
                "reason": "current_action",
                "agent_name": "billing",
                "requester": "dana",
                "link": "https://agents.example.com/sessions/s-1?tab=a&x=1",
                "first_seen_at": "2026-03-14T09:25:00Z",
                "state_changed_at": "2026-03-14T09:25:00Z",
            },
        }
    }


@pytest.mark.parametrize(
    ("purpose", "kind", "number"),
    [
        ("open", "handbell.attention.opened", None),
        ("reminder:3", "handbell.attention.reminder", 3),
        ("escalation:1", "handbell.attention.escalated", 1),
        ("settle", "handbell.attention.settled", None),
        ("digest:2", "handbell.digest", 2),
        ("notice:1", "handbell.notice", 1),
    ],
)
async def test_purpose_has_its_type(setting: Setting, purpose: str, kind: str, number: int | None) -> None:
    await setting.channel().send(message(purpose=purpose), context("hook"))

    event = next(iter(setting.receiver.events.values()))
    assert (event["type"], event["data"]["number"]) == (kind, number)


async def test_digest_lists_its_requests_and_later_their_states(setting: Setting) -> None:
    channel = setting.channel()
    await channel.send(message(item(), item(agent_name=None), purpose="digest:1"), context("hook"))
    told = message(settled(AttentionState.CANCELLED), item(), purpose="settle", key="b" * 32)
    await channel.send(told, context("hook", sent_before=(sent("msg_1", purpose="digest:1"),)))

    digest, later = setting.receiver.events.values()
    assert (digest["type"], later["type"]) == ("handbell.digest", "handbell.digest.settled")
    assert [one["state"] for one in later["data"]["items"]] == ["cancelled", "active"]
    assert later["timestamp"] == "2026-03-14T09:30:00Z"
    assert later["data"]["items_omitted"] == 0


async def test_id_stays_while_timestamp_and_signature_are_fresh_at_each_try(setting: Setting) -> None:
    channel = setting.channel()
    setting.receiver.faults.extend([http.answer(500), http.HANG_AFTER_ACCEPT])
    for attempt in range(1, 4):
        await channel.send(message(), context("hook", attempt=attempt))
        await setting.clock.advance(timedelta(minutes=7))

    tries = setting.receiver.tries
    assert [received.is_verified for received in tries] == [True, True, True]
    assert len({received.id for received in tries}) == 1
    assert len({received.timestamp for received in tries}) == 3
    assert len({received.signatures for received in tries}) == 3
    assert len(setting.receiver.events) == 1


@pytest.mark.parametrize("known", [[SECRET], [OTHER_SECRET], [SECRET, OTHER_SECRET]])
async def test_secrets_can_be_exchanged_without_a_gap(setting: Setting, known: list[str]) -> None:
    setting.receiver.secrets[:] = known

    outcome = await setting.channel(secrets=[SECRET, OTHER_SECRET]).send(message(), context("hook"))

    assert isinstance(outcome, Sent)
    assert len(setting.receiver.tries[0].signatures) == 2


async def test_receiver_with_another_secret_refuses(setting: Setting) -> None:
    outcome = await setting.channel(secrets=[OTHER_SECRET]).send(message(), context("hook"))

    assert outcome == Permanent(FailureReason.UNAUTHORIZED)


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (http.answer(200, "ok"), Sent("msg_" + "a" * 32)),
        (http.answer(202), Sent("msg_" + "a" * 32)),
        (http.answer(200, "x" * 200_000), Sent("msg_" + "a" * 32)),
        (http.answer(429, retry_after="2"), Temporary(FailureReason.RATE_LIMITED, timedelta(seconds=2))),
        (
            http.answer(503, retry_after="Sat, 14 Mar 2026 09:40:00 GMT"),
            Temporary(FailureReason.SERVER_ERROR, timedelta(minutes=10)),
        ),
        (http.html(502), Temporary(FailureReason.SERVER_ERROR)),
        (http.answer(400), Permanent(FailureReason.REJECTED)),
        (http.answer(410), Permanent(FailureReason.DESTINATION_GONE)),
        (http.redirect("/hooks/elsewhere"), Permanent(FailureReason.REDIRECTED)),
        (http.redirect("/hooks/elsewhere", 308), Permanent(FailureReason.REDIRECTED)),
        (http.HANG_AFTER_ACCEPT, Unknown(FailureReason.TIMED_OUT)),
        (http.HANG, Unknown(FailureReason.TIMED_OUT)),
        (http.DROP, Unknown(FailureReason.CONNECTION_LOST)),
    ],
)
async def test_answer_has_its_outcome(setting: Setting, fault: http.HttpFault, outcome: Outcome) -> None:
    setting.receiver.faults.append(fault)

    assert await setting.channel().send(message(), context("hook")) == outcome
    assert len(setting.receiver.tries) == 1


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("127.0.0.1", FailureReason.ADDRESS_REFUSED),
        ("localhost", FailureReason.ADDRESS_REFUSED),
        ("[::1]", FailureReason.ADDRESS_REFUSED),
        ("[::ffff:127.0.0.1]", FailureReason.ADDRESS_REFUSED),
        ("[64:ff9b::7f00:1]", FailureReason.ADDRESS_REFUSED),
        ("0.0.0.0", FailureReason.ADDRESS_REFUSED),
        ("2130706433", FailureReason.REJECTED),  # forms that only a browser takes for an address
        ("127.1", FailureReason.REJECTED),
    ],
)
async def test_private_address_is_never_connected_to_unless_allowed(
    setting: Setting, host: str, reason: FailureReason
) -> None:
    url = f"http://{host}:{setting.receiver.port}/hooks/s3cret"
    channel = setting.channel(allow_private=False, url=url)

    assert await channel.send(message(), context("hook")) == Permanent(reason)
    with pytest.raises(SettingsError, match="not public"):
        await channel.check()
    assert setting.receiver.tries == []


async def test_connection_of_one_that_may_is_not_lent_to_one_that_may_not(setting: Setting) -> None:
    assert isinstance(await setting.channel().send(message(), context("hook")), Sent)

    outcome = await setting.channel(allow_private=False).send(message(key="b" * 32), context("hook"))

    assert outcome == Permanent(FailureReason.ADDRESS_REFUSED)


async def test_redirect_is_refused_whatever_the_caller_forgot(setting: Setting) -> None:
    setting.receiver.faults.append(http.redirect("/hooks/elsewhere"))

    with pytest.raises(ClientError):
        await setting.services.http.session(allow_private=True).get(setting.receiver.url)

    assert len(setting.receiver.tries) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/s3cret", "http://nobody.invalid/s3cret"])
async def test_receiver_that_is_not_there_is_temporary(setting: Setting, url: str) -> None:
    channel = setting.channel(url=url)

    assert await channel.send(message(), context("hook")) == Temporary(FailureReason.UNREACHABLE)
    with pytest.raises(DependencyError) as caught:
        await channel.check()
    assert "s3cret" not in str(caught.value)


async def test_large_digest_is_bounded_and_says_what_is_missing(setting: Setting) -> None:
    for name in HOSTILE_NAMES:
        told = message(*[item(agent_name=name, requester=name)] * 200, purpose="digest:1", key="b" * 32)
        assert isinstance(await setting.channel().send(told, context("hook")), Sent)

    for received in setting.receiver.tries:
        data = json.loads(received.body)["data"]
        assert len(received.body.encode()) <= MAX_BODY_BYTES
        assert len(data["items"]) + data["items_omitted"] == 200
        assert data["items"]
