"""Each row of the guide's table of states, by the evidence of a real runtime, on both databases."""

import pytest

from reconciler.states import AttentionState, Evidence
from tests.support.cayu_settled import SettledStore
from tests.support.cayu_stores import CayuStore
from tests.support.sources import KnownIds, cayu_source, shown

OUTCOMES = {
    "ask": (AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE),
    "interrupted": (AttentionState.SUPERSEDED, Evidence.DURABLE_SUPERSESSION),
    "approve": (AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE),
    "denied": (AttentionState.CANCELLED, Evidence.DURABLE_CLOSURE),
    "expiring": (AttentionState.EXPIRED, Evidence.DURABLE_CLOSURE),
    "recover": (AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE),
    # In Cayu 0.15 these two leave no evidence: unavailable for good, and never resolved.
    "given-up": (AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE),
    "recover-failed": (AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE),
    "deleted": (AttentionState.UNAVAILABLE, Evidence.SESSION_UNAVAILABLE),
    "recreated": (AttentionState.UNAVAILABLE, Evidence.SESSION_REPLACED),
}


@pytest.mark.parametrize("session_id", OUTCOMES)
async def test_each_outcome_has_the_state_that_the_runtime_gives(settled_store: SettledStore, session_id: str) -> None:
    source = cayu_source(settled_store.store.url)

    answer = await source.observe(settled_store.references[session_id])
    await source.close()

    assert (answer.state, answer.reason) == OUTCOMES[session_id]


async def test_delegated_child_is_resolved_by_its_own_answer(settled_store: SettledStore) -> None:
    source = cayu_source(settled_store.store.url)
    async with settled_store.store.runtime() as (store, _app):
        children = {
            session_id: await store.load(session_id)
            for session_id in settled_store.references
            if session_id.startswith("cayu-child:")
        }
    [child] = [session_id for session_id, child in children.items() if child.parent_session_id == "parent"]

    answer = await source.observe(settled_store.references[child])
    await source.close()

    assert answer.state is AttentionState.RESOLVED


async def test_session_made_anew_under_its_name_is_another_request(settled_store: SettledStore) -> None:
    source = cayu_source(settled_store.store.url)

    view = await source.session("recreated", known=KnownIds())
    await source.close()

    [again] = view.active
    assert again.reference.attention_id != settled_store.references["recreated"].attention_id
    assert again.reference.session_instance_id != settled_store.references["recreated"].session_instance_id


async def test_approval_past_its_deadline_is_active_until_the_runtime_says_otherwise(cayu_store: CayuStore) -> None:
    """The fixture's deadline passed before the store was even copied; only a decision makes Cayu commit it."""
    source = cayu_source(cayu_store.url)

    expiring = (await shown(source))["expiring"]
    answer = await source.observe(expiring.reference)
    await source.close()

    assert (answer.state, answer.reason) == (AttentionState.ACTIVE, Evidence.CURRENT_ACTION)
