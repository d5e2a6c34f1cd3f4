"""The capture door: answered after the commit; the token is never readable, and goes when the request is over."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.reasons import Door
from reconciler.sources.pauses import pause_attention_id
from tests.support.capturing import ENVELOPE, ID, Capturing, body, capturing
from tests.support.pause_ledgers import Ledger


@pytest.fixture
async def door(engine: AsyncEngine, sqlite_pause_ledger: Ledger, tmp_path: Path) -> AsyncIterator[Capturing]:
    """Give the door, on each database."""
    async with capturing(engine, sqlite_pause_ledger, tmp_path) as made:
        yield made


@pytest.fixture
async def sqlite_door(
    sqlite_engine: AsyncEngine, documented_ledger: Ledger, tmp_path: Path
) -> AsyncIterator[Capturing]:
    """Give the door over a ledger that knows no sessions, on one database."""
    async with capturing(sqlite_engine, documented_ledger, tmp_path) as made:
        yield made


async def settle(door: Capturing) -> None:
    """Redeem the token in the runtime and let Handbell see it."""
    await door.ledger.consume("a")
    seen = await door.source.observe(door.source.reference("a", "ask_user"))
    await door.notifications.apply("prod", [seen], door=Door.VERIFY)


async def test_captured_pause_is_told_of_at_once_and_can_be_answered(door: Capturing) -> None:
    answer = await door.post(body())

    assert (answer.status_code, answer.json()) == (200, {"attention_id": ID, "state": "active", "repeated": False})
    assert await door.requests() == [(ID, "active", "session-1")]
    kept = await door.store.find(ID)
    assert kept is not None
    assert (kept.envelope, kept.call_id, kept.is_answerable) == (ENVELOPE, "call-1", True)


async def test_token_stands_nowhere_in_clear(door: Capturing) -> None:
    with structlog.testing.capture_logs() as logs:
        answer = await door.post(body())

    [sealed] = await door.sealed()
    assert sealed is not None
    assert ENVELOPE.encode() not in sealed
    assert ENVELOPE not in answer.text + repr(logs) + repr(await door.store.find(ID))


async def test_token_is_deleted_by_the_transaction_that_settles_the_request(door: Capturing) -> None:
    await door.post(body())
    await settle(door)

    assert await door.sealed() == [None]
    kept = await door.store.find(ID)
    assert kept is not None
    assert (kept.envelope, kept.is_answerable, kept.session_id) == (None, False, "session-1")


async def test_capture_that_comes_after_the_end_keeps_no_token(door: Capturing) -> None:
    await door.ledger.consume("a")

    answer = await door.post(body())

    assert (answer.json()["state"], await door.sealed(), await door.requests()) == ("resolved", [None], [])


async def test_capture_and_settlement_that_meet_leave_no_token(door: Capturing) -> None:
    first = await door.source.observe(door.source.reference("a", "ask_user"))
    await door.notifications.apply("prod", [first], door=Door.SWEEP)

    await asyncio.gather(door.post(body()), settle(door))

    assert await door.sealed() == [None]


async def test_pause_that_is_not_resumable_is_never_raised_and_never_answerable(door: Capturing) -> None:
    await door.post(body(resumable=False))

    again = await door.post(body(resumable=True))

    assert (again.status_code, again.json()["detail"]["code"]) == (409, "capture_mismatch")
    kept = await door.store.find(ID)
    assert kept is not None
    assert not kept.is_answerable


async def test_repeated_capture_changes_nothing(door: Capturing) -> None:
    await door.post(body())

    again = await door.post(body())

    assert (again.status_code, again.json()["repeated"], len(await door.sealed())) == (200, True, 1)


async def test_session_is_named_by_the_capture_where_the_ledger_knows_none(sqlite_door: Capturing) -> None:
    swept = await sqlite_door.source.observe(sqlite_door.source.reference("a", "ask_user"))
    await sqlite_door.notifications.apply("prod", [swept], door=Door.SWEEP)
    before = await sqlite_door.requests()

    await sqlite_door.post(body())

    assert (before, await sqlite_door.requests()) == ([(ID, "active", "")], [(ID, "active", "session-1")])


async def test_posted_words_open_nothing_that_the_ledger_does_not_show(sqlite_door: Capturing) -> None:
    forged = await sqlite_door.post(body(jti="never-issued"))

    assert (forged.status_code, forged.json()["state"]) == (200, "unavailable")
    assert await sqlite_door.requests() == []
    assert await sqlite_door.store.find(pause_attention_id("prod", "never-issued")) is not None


async def test_ledger_that_is_away_keeps_no_agent_waiting_and_makes_a_head_pass_due(sqlite_door: Capturing) -> None:
    await sqlite_door.clock.advance(timedelta(minutes=1))
    await sqlite_door.ledger.break_down()

    answer = await sqlite_door.post(body())

    assert (answer.status_code, len(await sqlite_door.sealed())) == (200, 1)
    assert await sqlite_door.head_due_at() == sqlite_door.clock.now()


async def test_keys_out_of_reach_are_try_again_and_nothing_is_kept(sqlite_door: Capturing) -> None:
    text = sqlite_door.keyset.read_text()
    sqlite_door.keyset.unlink()
    down = await sqlite_door.post(body())
    kept = await sqlite_door.sealed()
    sqlite_door.keyset.write_text(text)
    up = await sqlite_door.post(body())

    assert (down.status_code, down.json()["detail"]["code"], kept) == (503, "keys_unavailable", [])
    assert down.headers["Retry-After"]
    assert up.status_code == 200


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"protocol": "handbell.capture/v2"}, "protocol"),
        ({"jti": ""}, "jti"),
        ({"jti": "x" * 65}, "jti"),
        ({"name": "nul\x00"}, "name"),
        ({"envelope": "with space"}, "envelope"),
        ({"envelope": "x" * 16_385}, "envelope"),
        ({"session_id": "lone\udc80"}, "body"),
        ({"run_id": 7}, "run_id"),
        ({"resumable": 1}, "resumable"),
        ({"resumable": ...}, "resumable"),
        ({"more": "x"}, "more"),
    ],
    ids=str,
)
async def test_body_that_is_not_a_capture_is_refused_without_repeating_it(
    sqlite_door: Capturing, changes: dict[str, Any], where: str
) -> None:
    sent = body(**changes)

    answer = await sqlite_door.post(sent)

    assert answer.status_code == 422
    assert ENVELOPE not in answer.text
    assert where in answer.text or answer.json()["detail"]["code"] == "unsupported_protocol"
    assert await sqlite_door.sealed() == []


@pytest.mark.parametrize("wrong", [{"token": "another"}, {"token": ""}, {"namespace": "nobody"}], ids=str)
async def test_wrong_token_and_unknown_namespace_are_refused_alike(
    sqlite_door: Capturing, wrong: dict[str, str]
) -> None:
    answer = await sqlite_door.post(body(), **wrong)

    assert (answer.status_code, answer.json()["detail"]["code"]) == (401, "invalid_token")
    assert await sqlite_door.sealed() == []
