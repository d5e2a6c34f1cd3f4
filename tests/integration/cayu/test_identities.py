"""Identities and summaries are Cayu's own, computed without it; Cayu is the oracle."""

from cayu.runtime import HumanAttentionRequest

from reconciler.references import cayu_attention_id
from reconciler.sources.cayu_projection import cayu_reference
from reconciler.states import SUMMARIES, Kind
from tests.support.cayu_stores import CayuStore
from tests.support.sources import cayu_source, shown
from worker.scripted.runtime import CONTENT_MARK


async def test_identity_and_reference_of_every_kind_are_the_runtimes(unchanged_cayu_store: CayuStore) -> None:
    source = cayu_source(unchanged_cayu_store.url)
    found = await shown(source)
    await source.close()

    projected = {
        action.session.id: HumanAttentionRequest.from_pending_action(action)
        for action in await unchanged_cayu_store.actions()
    }

    assert {item.reference.kind for item in found.values()} == {
        Kind.USER_INPUT,
        Kind.TOOL_APPROVAL,
        Kind.MANUAL_RECOVERY,
    }
    for session_id, item in found.items():
        theirs = projected[session_id]
        assert theirs is not None
        assert cayu_reference(item.reference) == theirs.reference
        assert cayu_attention_id(item.reference) == theirs.reference.attention_id
        assert SUMMARIES[item.reference.kind] == theirs.summary


async def test_no_content_of_a_request_is_ever_carried(cayu_store: CayuStore) -> None:
    source = cayu_source(cayu_store.url)
    found = await shown(source)
    await source.close()

    assert CONTENT_MARK in "".join(action.model_dump_json() for action in await cayu_store.actions())
    assert CONTENT_MARK not in repr(found)
    assert "Which region" not in repr(found)
