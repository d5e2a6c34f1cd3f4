"""The four calls of the handoff against a real database: what they keep, what they answer, what they refuse."""

from operator import itemgetter
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.handoff_store import KEPT_REPORTS
from reconciler.handoff_tables import HANDOFF_REPORTS
from reconciler.reasons import DeliveryStatus
from reconciler.tables import DELIVERIES, HISTORY, NOTIFICATIONS
from tests.support.handoff import (
    active,
    body,
    complete,
    handoff_app,
    point,
    reference,
    reports,
    sender,
    verified,
)
from worker.web.models import PROTOCOL


async def rows(engine: AsyncEngine, namespace: str = "prod") -> dict[str, Any]:
    async with engine.connect() as connection:
        found = await connection.execute(select(NOTIFICATIONS).where(NOTIFICATIONS.c.namespace == namespace))
        return {row.attention_id: row for row in found}


async def count(engine: AsyncEngine, table: Any) -> int:
    async with engine.connect() as connection:
        return int((await connection.execute(select(func.count()).select_from(table))).scalar_one())


async def test_pushed_request_is_committed_with_its_message_before_the_answer(engine: AsyncEngine) -> None:
    rung: list[bool] = []
    app = handoff_app({"prod": point(engine, "prod", on_outbox=lambda: rung.append(True))})
    item = reference()

    async with sender(app, "prod") as client:
        answer = await client.post("observations", json=body(active(item), **complete()))

    assert (answer.status_code, answer.json()) == (200, {"accepted": 1, "verify": []})
    row = (await rows(engine))[item["attention_id"]]
    assert (row.state, row.agent_name, row.requester, row.session_id) == (
        "active",
        "worker",
        "alice@example.com",
        "s-1",
    )
    async with engine.connect() as connection:
        statuses = list((await connection.execute(select(DELIVERIES.c.status))).scalars())
    assert statuses == [DeliveryStatus.PENDING]
    assert rung == [True]


async def test_complete_session_asks_about_its_other_requests_and_settles_nothing(engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(engine, "prod")})
    first, second, foreign = reference(1), reference(2), reference(3, session_id="s-2")
    async with sender(app, "prod") as client:
        await client.post("observations", json=body(active(first), active(second), active(foreign)))

        shown_one = await client.post("observations", json=body(active(second), **complete()))
        shown_none = await client.post("observations", json=body(**complete()))
        incomplete = {"session_scope": {"complete": False, "session_id": "s-1"}}
        shown_partly = await client.post("observations", json=body(**incomplete))

    assert shown_one.json()["verify"] == [first]
    assert shown_none.json()["verify"] == [first, second]  # the first was heard of longest ago
    assert shown_partly.json()["verify"] == []
    assert {row.state for row in (await rows(engine)).values()} == {"active"}


async def test_verify_answers_settle_and_never_blank_out_what_was_known(engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(engine, "prod")})
    item = reference()
    async with sender(app, "prod") as client:
        await client.post("observations", json=body(active(item)))
        await client.post("observations", json=body(verified(item, "unavailable", "no_terminal_evidence")))
        unavailable = (await rows(engine))[item["attention_id"]]
        await client.post("observations", json=body(verified(item, "resolved")))
        await client.post("observations", json=body(active(item)))
        await client.post("observations", json=body(verified(item, "cancelled")))

    row = (await rows(engine))[item["attention_id"]]
    assert unavailable.state == "unavailable"
    assert (row.state, row.agent_name, row.requester) == ("resolved", "worker", "alice@example.com")
    async with engine.connect() as connection:
        history = (await connection.execute(select(HISTORY.c.to_state, HISTORY.c.is_conflict))).all()
    assert [tuple(entry) for entry in history] == [
        ("active", False),
        ("unavailable", False),
        ("resolved", False),
        ("cancelled", True),
    ]


async def test_requester_that_came_late_is_filled_in_and_not_taken_away(engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(engine, "prod")})
    item = reference()
    unavailable = {**active(item, requester=None), "state": "unavailable", "reason": "incomplete_query"}

    async with sender(app, "prod") as client:
        await client.post("observations", json=body(unavailable))
        await client.post("observations", json=body(active(item)))
        await client.post("observations", json=body(active(item, requester=None)))
        await client.post("observations", json=body(active(item, requester="mallory")))

    assert (await rows(engine))[item["attention_id"]].requester == "alice@example.com"


async def test_unknown_reference_without_its_request_is_not_enrolled(engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(engine, "prod")})

    async with sender(app, "prod") as client:
        answer = await client.post("observations", json=body(verified(reference(), "active", "current_action")))

    assert answer.status_code == 200
    assert await rows(engine) == {}


async def test_one_body_may_open_and_settle_the_same_request(engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(engine, "prod")})
    item = reference()

    async with sender(app, "prod") as client:
        await client.post("observations", json=body(active(item), verified(item, "resolved")))

    assert (await rows(engine))[item["attention_id"]].state == "resolved"


async def test_two_namespaces_never_meet(engine: AsyncEngine) -> None:
    points = {
        "prod": point(engine, "prod"),
        "stage": point(engine, "stage", tokens=["another-token"]),
    }
    app = handoff_app(points)
    item = reference()
    async with sender(app, "prod") as prod, sender(app, "stage", "another-token") as stage:
        await prod.post("observations", json=body(active(item), scan={"cursor": "c-1", "complete": False}))

        seen = await stage.post("observations", json=body(**complete()))
        listed = await stage.get("references")
        state = await stage.get("state")

    assert (seen.json()["verify"], listed.json()["items"], state.json()["scan_cursor"]) == ([], [], None)
    async with sender(app, "stage") as thief:
        assert (await thief.get("state")).status_code == 401
    assert await rows(engine, "stage") == {}


async def test_scan_cursor_is_kept_until_the_scan_ends(engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(engine, "prod")})
    cursors = []

    async with sender(app, "prod") as client:
        for scan in (
            {"cursor": "c-1", "complete": False},
            {"cursor": None, "complete": False},
            {"cursor": "c-2", "complete": False},
            {"cursor": None, "complete": True},
        ):
            await client.post("observations", json=body(scan=scan))
            cursors.append((await client.get("state")).json()["scan_cursor"])
        refused = body(active({**reference(), "attention_id": "attention_" + "0" * 64}))
        await client.post("observations", json={**refused, "scan": {"cursor": "c-3", "complete": False}})
        state = (await client.get("state")).json()

    assert cursors == ["c-1", None, "c-2", None]
    assert state == {"scan_cursor": None, "reconcile_interval_seconds": 300.0}


async def test_references_come_in_pages_without_the_settled_ones(engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(engine, "prod")})
    items = [reference(number, session_id=f"s-{number % 2}") for number in range(1, 6)]
    async with sender(app, "prod") as client:
        await client.post("observations", json=body(*(active(item) for item in items)))
        await client.post("observations", json=body(verified(items[1], "resolved")))

        first = (await client.get("references", params={"limit": 3})).json()
        second = (await client.get("references", params={"limit": 3, "after": first["next_after"]})).json()
        odd = (await client.get("references", params={"session_id": "s-1"})).json()

    by_id = itemgetter("attention_id")
    assert len(first["items"]) == 3
    assert sorted(first["items"] + second["items"], key=by_id) == sorted([items[0], *items[2:]], key=by_id)
    assert second["next_after"] is None
    assert sorted(odd["items"], key=by_id) == sorted([items[0], items[2], items[4]], key=by_id)


async def test_verify_is_bounded_at_what_the_client_can_bear(engine: AsyncEngine) -> None:
    app = handoff_app({"prod": point(engine, "prod")})
    items = [reference(number) for number in range(1, 203)]
    async with sender(app, "prod") as client:
        await client.post("observations", json=body(*(active(item) for item in items[:200])))
        await client.post("observations", json=body(*(active(item) for item in items[200:])))

        verify = (await client.post("observations", json=body(active(items[0]), **complete()))).json()["verify"]
        await client.post("observations", json=body(*(active(item) for item in verify)))
        later = (await client.post("observations", json=body(**complete()))).json()["verify"]

    by_id = itemgetter("attention_id")
    assert len(verify) == 200
    assert sorted(verify[:199], key=by_id) == sorted(items[1:200], key=by_id)  # the others are younger
    assert later[0] not in verify
    assert len(later) == 200


async def test_reports_are_kept_and_the_oldest_let_go(engine: AsyncEngine) -> None:
    store = point(engine, "prod")
    app = handoff_app({"prod": store})
    report = {
        "protocol": PROTOCOL,
        "runtime_version": "0.15.0",
        "issues": ["attention_unavailable", "page_too_large"],
        "observed": 7,
        "pages": 2,
        "scan_complete": False,
        "verify_complete": True,
    }

    async with sender(app, "prod") as client:
        for pages in range(KEPT_REPORTS + 2):
            assert (await client.post("reconciliations", json={**report, "pages": pages})).json() == {"ok": True}

    latest = (await reports(engine))["prod"]
    assert (latest.pages, latest.issues) == (KEPT_REPORTS + 1, ("attention_unavailable", "page_too_large"))
    assert await count(engine, HANDOFF_REPORTS) == KEPT_REPORTS


FORGED = {**reference(), "action_id": "action-of-another"}
NUL = {**reference(), "round_id": "a\x00b"}


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (body(active(FORGED)), 409, "identity_mismatch"),
        (body(active(reference(1)), active(FORGED)), 409, "identity_mismatch"),
        (body(*[active(reference(n)) for n in range(1, 202)]), 422, "too_many_observations"),
        ({**body(active(reference())), "protocol": "cayu.human-attention-handoff/v2"}, 422, "unsupported_protocol"),
        ({**body(active(reference())), "surprise": 1}, 422, "invalid_body"),
        (body({**active(reference()), "question": "Which region?"}), 422, "invalid_body"),
        (body({**active(reference()), "state": "open"}), 422, "invalid_body"),
        (body(active({**reference(), "source_sequence": "11"})), 422, "invalid_body"),
        (body(active({**reference(), "source_sequence": 2**63})), 422, "invalid_body"),
        (body(active(NUL)), 422, "invalid_body"),
        (body(active(reference()), session_scope={"session_id": "s-1", "complete": 1}), 422, "invalid_body"),
        ([], 422, "invalid_body"),
    ],
)
async def test_what_cannot_be_right_is_refused_whole(
    sqlite_engine: AsyncEngine, sent: Any, status: int, code: str
) -> None:
    app = handoff_app({"prod": point(sqlite_engine, "prod")})

    async with sender(app, "prod") as client:
        answer = await client.post("observations", json=sent)

    assert (answer.status_code, answer.json()["detail"]["code"]) == (status, code)
    assert "region" not in answer.text
    assert await rows(sqlite_engine) == {}


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'"\\ud800"', b"[" * 100_000, b"NaN"])
async def test_what_is_not_json_is_refused_with_json(sqlite_engine: AsyncEngine, content: bytes) -> None:
    app = handoff_app({"prod": point(sqlite_engine, "prod")})

    async with sender(app, "prod") as client:
        answer = await client.post("observations", content=content)

    assert (answer.status_code, answer.json()["detail"]["code"]) == (422, "invalid_body")


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "limit=x",
        "after=zzz",
        "after=-1",
        "session_id=",
        "session_id=%00",
        "x=1",
        "limit=1&limit=2",
    ],
)
async def test_wrong_query_is_refused(sqlite_engine: AsyncEngine, query: str) -> None:
    app = handoff_app({"prod": point(sqlite_engine, "prod")})

    async with sender(app, "prod") as client:
        answer = await client.get(f"references?{query}")

    assert (answer.status_code, answer.json()["detail"]["code"]) == (422, "invalid_query")
