"""The capture hook inside an agent's process: a pause is shown only once Handbell has committed it."""

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from reconciler.pauses.contribution import TakenPause
from sinks.emit.capture import CapturedPause, PauseCapture, pause_of
from sinks.emit.errors import NotCapturedReason, PauseNotCaptured, SinkConfigError
from tests.contract.pause_tokens.kit import Rig
from tests.support.capturing import ENVELOPE, capturing
from tests.support.handoff import TOKEN, serving
from tests.support.pause_ledgers import Ledger

PAUSE = CapturedPause("a", "ask_user", ENVELOPE, session_id="session-1", call_id="call-1", resumable=True)
SYMFONIC_CLAIMS = {
    "jti": "a",
    "name": "ask_user",
    "session_id": "session-1",
    "run_id": "run-1",
    "thread_id": "t",
    "checkpoint_id": "cp",
    "tool_call_id": "call-1",
    "interrupt_id": "",
}


@dataclass
class Receiver:
    """A server that answers as told, one status after the other, and remembers what it got."""

    statuses: list[int]
    got: list[dict[str, Any]] = field(default_factory=list)

    async def take(self, request: Request) -> Response:
        self.got.append({"authorization": request.headers["authorization"], **await request.json()})
        status = self.statuses.pop(0)
        if status == 307:
            return RedirectResponse("/capture/elsewhere")
        return JSONResponse({"detail": ENVELOPE}, status)

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/capture/{namespace}", self.take, methods=["POST"])])


@pytest.fixture
async def taken() -> TakenPause:
    """A pause that a run of the capability took."""
    rig = Rig()
    event = await rig.ask()
    return TakenPause(event, event.pause.envelope.token)


async def run_of(*events: Any) -> AsyncIterator[Any]:
    for event in events:
        yield event


async def test_pause_is_committed_before_it_is_shown(
    sqlite_engine: AsyncEngine, sqlite_pause_ledger: Ledger, tmp_path: Path, taken: TakenPause
) -> None:
    async with capturing(sqlite_engine, sqlite_pause_ledger, tmp_path) as door, serving(door.app()) as server:
        await sqlite_pause_ledger.issue(taken.event.pause.claims.jti)
        capture = PauseCapture(f"{server.url}/capture/prod", token=TOKEN)

        kept = []
        async for event in capture.stream(run_of("a word", taken, "another")):
            kept.append((event, len(await door.sealed())))

    assert kept == [("a word", 0), (taken, 1), ("another", 1)]


async def test_what_travels_is_the_pause_and_nothing_of_the_question(taken: TakenPause) -> None:
    receiver = Receiver([200])
    async with serving(receiver.app()) as server:
        capture = PauseCapture(f"{server.url}/capture/prod", token=TOKEN)
        shown = [event async for event in capture.stream(run_of(taken))]

    [got] = receiver.got
    claims = taken.event.pause.claims
    assert shown == [taken]
    assert got["authorization"] == f"Bearer {TOKEN}"
    assert (got["jti"], got["envelope"], got["resumable"]) == (claims.jti, taken.token, True)
    assert (got["session_id"], got["run_id"], got["call_id"]) == ("s-1", "r-1", "call-1")
    assert "Deploy" not in json.dumps(got)


@pytest.mark.parametrize("status", [503, 429, 500])
async def test_what_may_pass_is_tried_again(status: int) -> None:
    receiver = Receiver([status, 200])
    async with serving(receiver.app()) as server:
        await PauseCapture(f"{server.url}/capture/prod", token=TOKEN).capture(PAUSE)

    assert len(receiver.got) == 2
    assert receiver.got[0] == receiver.got[1]


@pytest.mark.parametrize("status", [401, 409, 422, 307])
async def test_refusal_is_said_at_once_and_the_token_goes_nowhere_else(status: int) -> None:
    receiver = Receiver([status, 200])
    async with serving(receiver.app()) as server:
        with pytest.raises(PauseNotCaptured) as lost:
            await PauseCapture(f"{server.url}/capture/prod", token=TOKEN).capture(PAUSE)

    assert (lost.value.reason, len(receiver.got)) == (NotCapturedReason.REFUSED, 1)
    assert ENVELOPE not in str(lost.value)


async def test_pause_that_was_not_captured_is_not_shown_unless_told_to(taken: TakenPause) -> None:
    async with serving(Receiver([]).app()) as server:
        url = f"{server.url}/capture/prod"
    strict = PauseCapture(url, token=TOKEN, within_seconds=0.2)
    lenient = PauseCapture(url, token=TOKEN, within_seconds=0.2, if_lost="show")

    with pytest.raises(PauseNotCaptured) as lost:
        await anext(strict.stream(run_of(taken)))
    shown = await anext(lenient.stream(run_of(taken)))

    assert lost.value.reason is NotCapturedReason.UNREACHABLE
    assert shown is taken


async def test_pause_without_a_turn_says_that_it_is_not_resumable(taken: TakenPause) -> None:
    event = replace(taken.event, resumable=False)

    found = pause_of(event)

    assert found is not None
    assert (found.resumable, found.envelope) == (False, taken.token)
    assert taken.token not in repr(found)


def test_event_of_the_published_relative_is_read_from_its_token() -> None:
    claims = base64.urlsafe_b64encode(json.dumps(SYMFONIC_CLAIMS).encode()).decode().rstrip("=")
    event = SimpleNamespace(pause_token=f"e30.{claims}.sig", session_id="session-1", run_id="run-1")

    found = pause_of(event)

    assert found is not None
    assert (found.jti, found.call_id, found.thread_id, found.root_run_id) == ("a", "call-1", "t", "run-1")
    assert not found.resumable


@pytest.mark.parametrize("event", ["text", 7, None, SimpleNamespace(pause=None), SimpleNamespace(pause="later")])
def test_other_events_are_no_pauses(event: object) -> None:
    assert pause_of(event) is None


def test_token_that_cannot_be_written_down_or_read_is_said(taken: TakenPause) -> None:
    pause = replace(taken.event.pause, envelope=object())

    with pytest.raises(SinkConfigError, match="give encode_token"):
        pause_of(replace(taken.event, pause=pause))
    with pytest.raises(SinkConfigError, match="does not say its id"):
        pause_of(SimpleNamespace(pause_token="not-a-token"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"url": "ftp://h/capture/p"}, "url"),
        ({"url": "https://h/handoff/p"}, "url"),
        ({"token": ""}, "token"),
        ({"token": "two\nlines"}, "token"),
        ({"within_seconds": 0}, "within_seconds"),
        ({"if_lost": "ignore"}, "if_lost"),
    ],
    ids=str,
)
def test_argument_that_cannot_be_used_is_one_line(arguments: dict[str, Any], says: str) -> None:
    usual: dict[str, Any] = {"url": "https://h/capture/p", "token": TOKEN}

    with pytest.raises(SinkConfigError, match=f"^{says}"):
        PauseCapture(**(usual | arguments))
