"""A door answers in time whatever the work behind it does, for a sender that hears nothing cannot tell what to do."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from config.clock import FrozenClock
from worker.web.capture import CapturePoint
from worker.web.guard import Limits, answer
from worker.web.rates import RateLimit
from worker.web.tokens import Tokens

HEADERS = {"Authorization": "Bearer t"}


async def test_answer_does_not_wait_for_what_a_late_work_cleans_up() -> None:
    """A connection to a database that is frozen takes seconds to be given up."""
    may_end, has_ended = asyncio.Event(), asyncio.Event()

    async def work(_point: CapturePoint, _request: Request) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            await may_end.wait()
            has_ended.set()
        return {}

    rate = RateLimit(FrozenClock(datetime(2026, 1, 1, tzinfo=UTC)), per_second=1, burst=1)
    limits = Limits(answer_within=timedelta(milliseconds=20))
    points = {"prod": CapturePoint(None, Tokens(["t"]), rate, limits)}  # type: ignore[arg-type]  # is not asked here

    async def endpoint(request: Request) -> Response:
        return await answer(request, points, work)

    transport = httpx.ASGITransport(app=Starlette(routes=[Route("/{namespace}", endpoint)]))
    async with httpx.AsyncClient(transport=transport, base_url="http://h", headers=HEADERS) as client:
        async with asyncio.timeout(5):
            said = await client.get("/prod")
        may_end.set()
        await has_ended.wait()

    assert (said.status_code, said.json()["detail"]["code"]) == (503, "timed_out")
