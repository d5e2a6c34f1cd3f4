"""Our own receiver passes the conformance check, and the check finds out a receiver that does not."""

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from reconciler.tables import NOTIFICATIONS
from tests.support.handoff import TOKEN, handoff_app, point, serving
from worker.cli.main import main
from worker.conformance.handoff import Verdict, try_out
from worker.conformance.sender import MARK


async def tried(app: Any, **options: Any) -> list[Verdict]:
    async with serving(app) as server, aiohttp.ClientSession() as http:
        return await try_out(http, f"{server.url}/handoff/check", TOKEN, **options)


async def test_our_receiver_passes_and_is_left_clean(engine: AsyncEngine) -> None:
    app = handoff_app({"check": point(engine, "check", tokens=[TOKEN, "second"])})

    verdicts = await tried(app, second_token="second")

    assert [verdict for verdict in verdicts if verdict.wrong or verdict.is_skipped] == []
    async with engine.connect() as connection:
        rows = (await connection.execute(select(NOTIFICATIONS.c.session_id, NOTIFICATIONS.c.state))).all()
    assert {row.session_id.split(":")[0] for row in rows} == {MARK}
    assert not {row.state for row in rows} & {"active", "unavailable"}


async def test_receiver_that_believes_everything_is_found_out() -> None:
    async def answer(request: Request) -> Response:
        await request.body()
        return JSONResponse({"verify": [], "items": [], "next_after": None, "scan_cursor": None})

    verdicts = await tried(Starlette(routes=[Route("/handoff/check/{call}", answer, methods=["GET", "POST"])]))

    wrong = {verdict.name: verdict.wrong for verdict in verdicts if verdict.wrong}
    assert len(wrong) >= 8
    assert wrong["a wrong or missing token is declined (401, 403)"] == (
        "answered 200 where it should refuse with 401 or 403"
    )


async def test_receiver_that_only_fails_is_said_to(tmp_path: Path) -> None:
    async def answer(_request: Request) -> Response:
        return Response(json.dumps("down"), 500)

    verdicts = await tried(Starlette(routes=[Route("/handoff/check/{call}", answer, methods=["GET", "POST"])]))

    assert all(verdict.wrong or verdict.is_skipped for verdict in verdicts if "oversize" not in verdict.name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["http://127.0.0.1:9/handoff/check"], "--i-own-this"),
        (["ftp://x", "--i-own-this"], "https://"),
        (["http://127.0.0.1:9/x", "--i-own-this"], "CAYU_ATTENTION_HANDOFF_TOKEN"),
        (["http://127.0.0.1:9/x", "--i-own-this", "--token-file", "/nowhere/token"], "/nowhere/token"),
    ],
)
def test_wrong_command_line_is_one_line_and_exit_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CAYU_ATTENTION_HANDOFF_TOKEN", raising=False)

    assert main(["handoff-check", *arguments]) == 2

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/handoff/check", "http://[::1/", "http://a b/"])
def test_receiver_that_is_not_there_is_one_line_and_exit_1(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAYU_ATTENTION_HANDOFF_TOKEN", "t")

    assert main(["handoff-check", url, "--i-own-this"]) == 1

    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert "did not answer" in said.err
