"""Each state of an inbox item, by a live Cayu server; what a server does not tell is said in the last two tests."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
from aiohttp import ClientSession
from cayu.server._inbox_routes import _session_item_id, _SessionLocator

from reconciler.references import Reference
from reconciler.sources.cayu_http import CayuHttpSource
from reconciler.sources.cayu_http_answers import ItemState, item_state
from reconciler.states import AttentionState, Evidence, Kind
from tests.support.cayu_server import cayu_server
from tests.support.cayu_settled import SettledStore
from tests.support.sources import http_source

ITEM_KINDS = {Kind.USER_INPUT: "question", Kind.TOOL_APPROVAL: "approval", Kind.MANUAL_RECOVERY: "recovery"}
OUTCOMES = {
    "ask": (AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE),
    "interrupted": (AttentionState.SUPERSEDED, Evidence.DURABLE_SUPERSESSION),
    "approve": (AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE),
    "denied": (AttentionState.CANCELLED, Evidence.DURABLE_CLOSURE),
    "expiring": (AttentionState.EXPIRED, Evidence.DURABLE_CLOSURE),
    "recover": (AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE),
    "given-up": (AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE),
    "recover-failed": (AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE),
    "deleted": (AttentionState.UNAVAILABLE, Evidence.SESSION_UNAVAILABLE),
    "recreated": (AttentionState.UNAVAILABLE, Evidence.SESSION_UNAVAILABLE),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def source(settled_sqlite: SettledStore) -> AsyncIterator[CayuHttpSource]:
    async with ClientSession() as http, cayu_server(settled_sqlite.store) as url:
        yield http_source(url, http)


def as_listed_before(reference: Reference) -> Reference:
    """Return the reference that the source had when the request was pending: the server's own item id."""
    assert reference.source_sequence is not None
    locator = _SessionLocator(
        ITEM_KINDS[reference.kind],  # type: ignore[arg-type]
        reference.session_id,
        reference.source_sequence,
        reference.attention_id,
    )
    return replace(reference, session_instance_id="", action_id=_session_item_id(locator))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("session_id", OUTCOMES)
async def test_each_item_state_is_the_state_that_the_store_gives(
    source: CayuHttpSource, settled_references: dict[str, Reference], session_id: str
) -> None:
    answer = await source.observe(as_listed_before(settled_references[session_id]))

    assert (answer.state, answer.reason) == OUTCOMES[session_id]


@pytest.mark.parametrize("decision", ["keep", "drop", "a-word-of-tomorrow"])
def test_decision_that_is_not_known_proves_nothing(decision: str) -> None:
    answer = ItemState.model_validate({"status": "settled", "settlement": {"decision": decision}})

    assert item_state(answer, "attention_1") == (AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE)


@pytest.mark.parametrize("status", ["unavailable", "a-word-of-tomorrow"])
def test_status_that_is_not_known_proves_nothing(status: str) -> None:
    state = item_state(ItemState.model_validate({"status": status}), "attention_1")

    assert state == (AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE)


def test_pending_item_of_another_request_is_not_active() -> None:
    answer = ItemState.model_validate({"status": "pending", "item": {"id": "i", "attention_id": "attention_2"}})

    assert item_state(answer, "attention_1")[0] is AttentionState.UNAVAILABLE


def test_blocked_recovery_cannot_be_told_from_a_completed_one() -> None:
    """Cayu 0.15's server says `recover` of both; the store source says cancelled of the blocked one."""
    answer = ItemState.model_validate({"status": "settled", "settlement": {"decision": "recover"}})

    assert item_state(answer, "attention_1") == (AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE)
