"""A server that refuses, limits, fails or is no Cayu server: one line without address or token, and left alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from email.utils import format_datetime

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from config.clock import FrozenClock
from reconciler.errors import SourceError, SourceRefused, SourceUnavailable
from reconciler.references import Reference
from reconciler.sources.cayu_http import CayuHttpSource
from reconciler.states import AttentionState, Evidence, Kind
from tests.support.sources import SEEN_AT, TOKEN, KnownIds, http_source

REFERENCE = Reference("attention_1", "s", "", Kind.USER_INPUT, "inbox_x", source_sequence=1)
EMPTY_PAGE = {"actions": [], "issues": [], "next_cursor": None, "has_more": False}


class Faulty:
    """A server whose every answer a test decides; counts what it was asked."""

    def __init__(self) -> None:
        self.answer = web.json_response
        self.status = 200
        self.headers: dict[str, str] = {}
        self.text: str | None = None
        self.asked: list[str] = []

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if self.text is not None:
            return web.Response(text=self.text, status=self.status, headers=self.headers)
        return web.json_response(EMPTY_PAGE, status=self.status, headers=self.headers)


@asynccontextmanager
async def faulty(clock: FrozenClock) -> AsyncIterator[tuple[Faulty, CayuHttpSource]]:
    server = Faulty()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", server.handle)
    async with TestServer(app) as listening, ClientSession() as http:
        yield server, http_source(str(listening.make_url("/")), http, clock=clock)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(SEEN_AT)


@pytest.fixture
async def pair(clock: FrozenClock) -> AsyncIterator[tuple[Faulty, CayuHttpSource]]:
    async with faulty(clock) as both:
        yield both


async def refusal(source: CayuHttpSource) -> SourceError:
    with pytest.raises(SourceError) as failed:
        await source.check()
    text = str(failed.value)
    assert "\n" not in text
    assert TOKEN not in text
    assert "127.0.0.1" not in text
    assert "secret" not in text
    return failed.value


@pytest.mark.parametrize("status", [401, 403])
async def test_refused_credentials_are_a_configuration_error(pair: tuple[Faulty, CayuHttpSource], status: int) -> None:
    server, source = pair
    server.status = status

    failed = await refusal(source)
    answer = await source.observe(REFERENCE)

    assert (type(failed), failed.reason) == (SourceRefused, "refused")
    assert (answer.state, answer.reason) == (AttentionState.UNAVAILABLE, Evidence.STORE_UNAVAILABLE)


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_overloaded_server_is_left_alone_longer_each_time(
    pair: tuple[Faulty, CayuHttpSource], clock: FrozenClock, status: int
) -> None:
    server, source = pair
    server.status = status
    waits = []
    for _ in range(3):
        failed = await refusal(source)
        assert (type(failed), failed.reason) == (SourceUnavailable, "overloaded")
        asked = len(server.asked)
        waited = timedelta(0)
        while len(server.asked) == asked:
            assert (await source.observe(REFERENCE)).reason is Evidence.STORE_UNAVAILABLE
            if len(server.asked) == asked:
                await clock.advance(timedelta(seconds=1))
                waited += timedelta(seconds=1)
        waits.append(waited)
        await clock.advance(timedelta(minutes=5))

    assert waits[0] < waits[1] < waits[2]


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_retry_after_is_honoured_and_success_ends_the_wait(
    pair: tuple[Faulty, CayuHttpSource], clock: FrozenClock, form: str
) -> None:
    server, source = pair
    wait = timedelta(seconds=90)
    server.status = 429
    server.headers["Retry-After"] = "90" if form == "seconds" else format_datetime(SEEN_AT + wait, usegmt=True)
    await refusal(source)
    server.status, server.headers = 200, {}

    await clock.advance(wait - timedelta(seconds=1))
    early = await refusal(source)
    asked_early = len(server.asked)
    await clock.advance(timedelta(seconds=1))
    await source.check()
    await source.check()

    assert (early.reason, asked_early) == ("backing_off", 1)


@pytest.mark.parametrize("retry_after", ["soon", "-5", "", "1e9", "9" * 5000, f"1 Jan {'9' * 30} 00:00:00 GMT"])
async def test_nonsense_in_retry_after_neither_breaks_nor_blocks_for_good(
    pair: tuple[Faulty, CayuHttpSource], clock: FrozenClock, retry_after: str
) -> None:
    server, source = pair
    server.status, server.headers = 503, {"Retry-After": retry_after}
    await refusal(source)
    server.status = 200

    await clock.advance(timedelta(hours=1))

    await source.check()


@pytest.mark.parametrize(
    "text", ["<html>secret login</html>", "[]", "null", '"secret"', '{"actions": "secret"}', "", "[" * 10_000]
)
async def test_answer_of_something_else_is_one_line(pair: tuple[Faulty, CayuHttpSource], text: str) -> None:
    server, source = pair
    server.text = text

    failed = await refusal(source)

    assert (type(failed), failed.reason) == (SourceUnavailable, "bad_answer")


@pytest.mark.parametrize("status", [302, 404, 418])
async def test_status_that_the_route_does_not_have_is_one_line(
    pair: tuple[Faulty, CayuHttpSource], status: int
) -> None:
    server, source = pair
    server.status, server.headers = status, {"Location": "/secret"}

    failed = await refusal(source)

    assert failed.reason == "bad_answer"
    assert server.asked == ["/api/pending-actions"], "a redirect would take the token elsewhere"


async def test_server_that_is_not_there_is_unreachable() -> None:
    async with ClientSession() as http:
        failed = await refusal(http_source("http://127.0.0.1:1", http))

    assert (type(failed), failed.reason) == (SourceUnavailable, "unreachable")


async def test_open_liveness_route_is_never_asked(pair: tuple[Faulty, CayuHttpSource]) -> None:
    server, source = pair

    await source.check()
    await source.page(None, limit=200, known=KnownIds())

    assert set(server.asked) == {"/api/pending-actions"}
