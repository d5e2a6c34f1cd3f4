"""What Handbell takes from Cayu's own surface: read-only, bounded, and as the guide names it."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from cayu import CayuApp
from cayu.human_attention_handoff import HumanAttentionHandoff, HumanAttentionReceiver
from cayu.runtime import HumanAttentionReference, HumanAttentionRequest
from cayu.runtime import human_attention as theirs
from cayu.sessions import InMemorySessionStore, PendingActionQuery
from cayu.tools import UserInputTool
from pydantic import ValidationError

from reconciler.sources.cayu_projection import cayu_reference
from reconciler.states import AttentionState, Evidence
from tests.contract.cayu.conftest import Case
from tests.support.sources import KnownIds
from worker.scripted.runtime import CONTENT_MARK

ROOT = Path(__file__).parents[3]


async def everything(case: Case) -> Any:
    """Return what reading must not change: sessions, events, and what is still to be delivered."""
    async with case.store.runtime() as (store, _app):
        actions = (await store.query_pending_actions(PendingActionQuery(limit=200))).actions
        rows = await store.list_persisted_event_side_effect_deliveries(limit=1000)
        events = {action.session.id: len(await store.load_events(action.session.id)) for action in actions}
    return [action.model_dump(mode="json") for action in actions], [row.model_dump() for row in rows], events


async def test_reading_changes_nothing_of_the_store(paused: Case) -> None:
    before = await everything(paused)

    page = await paused.source.page(None, limit=200, known=KnownIds())
    await paused.source.session("ask", known=KnownIds())
    for item in page.active:
        await paused.source.observe(item.reference)

    assert await everything(paused) == before


async def test_store_is_opened_for_reading_only_and_by_an_application_without_agents(paused: Case) -> None:
    opened = await paused.source._opened()

    assert opened.app.human_attention_handoff is None
    assert not opened.app._event_sinks
    with pytest.raises(Exception, match=r"(?i)read.?only"):
        await opened.store.update_labels("ask", {"written": "yes"})


async def test_recipe_of_the_guide_gives_what_the_source_gives(paused: Case) -> None:
    ours = await paused.source.page(None, limit=200, known=KnownIds())
    shown = {item.reference.attention_id for item in ours.active}

    accepted = set()
    async with paused.store.runtime() as (store, app):
        page = await store.query_pending_actions(PendingActionQuery(limit=100))
        for action in page.actions:
            notification = HumanAttentionRequest.from_pending_action(action)
            if notification is None:
                assert action.delegated_action is not None
                continue
            current = await app.get_human_attention_state(notification.reference)
            if current.state == "active":
                accepted.add(notification.reference.attention_id)

    assert accepted - shown == {reference.attention_id for reference in ours.withheld}
    assert shown <= accepted


async def test_answer_about_a_state_is_state_and_reason_and_nothing_of_the_content(paused: Case) -> None:
    async with paused.store.runtime() as (store, app):
        [action] = (await store.query_pending_actions(PendingActionQuery(session_id="ask"))).actions
        request = HumanAttentionRequest.from_pending_action(action)
        assert request is not None
        current = await app.get_human_attention_state(request.reference)

    assert set(type(current).model_fields) == {"attention_id", "state", "observed_at", "reason"}
    assert CONTENT_MARK in action.model_dump_json()
    assert CONTENT_MARK not in current.model_dump_json() + request.model_dump_json()


async def test_forged_reference_is_refused_and_nothing_can_be_concluded_from_it(paused: Case) -> None:
    question = (await paused.source.page(None, limit=200, known=KnownIds())).active[0].reference
    genuine = cayu_reference(question)

    with pytest.raises(ValidationError):
        HumanAttentionReference.model_validate({**genuine.model_dump(), "session_instance_id": "another"})


@pytest.mark.parametrize("limit", [0, 201])
def test_page_is_bounded_at_two_hundred(limit: int) -> None:
    with pytest.raises(ValidationError):
        PendingActionQuery(limit=limit)
    assert PendingActionQuery(limit=200).limit == 200


def test_words_of_the_runtime_are_the_ones_that_handbell_knows() -> None:
    assert set(get_args(theirs.AttentionState)) == {state.value for state in AttentionState}
    assert set(get_args(theirs.AttentionReason)) == {reason.value for reason in Evidence}


def test_runtime_knows_no_end_of_a_question_by_its_age() -> None:
    """`ask_user` takes no deadline, so nothing can expire it."""
    properties = UserInputTool().spec.input_schema["properties"]
    assert not [name for name in properties if "expir" in name or "deadline" in name or "ttl" in name]


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("CAYU_ATTENTION_HANDOFF_URL", "CAYU_ATTENTION_HANDOFF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def in_memory(**options: Any) -> CayuApp:
    return CayuApp(session_store=InMemorySessionStore(), enable_logging=False, **options)


def test_two_variables_attach_the_handoff_and_none_does_not(no_environment: pytest.MonkeyPatch) -> None:
    without = in_memory().human_attention_handoff
    no_environment.setenv("CAYU_ATTENTION_HANDOFF_URL", "http://127.0.0.1:1/handoff/prod")
    no_environment.setenv("CAYU_ATTENTION_HANDOFF_TOKEN", "a-token-of-the-tests")

    attached = in_memory().human_attention_handoff
    refused = in_memory(human_attention_handoff=HumanAttentionHandoff(None)).human_attention_handoff

    assert (without, refused) == (None, None)
    assert attached is not None
    assert attached.enabled


@pytest.mark.parametrize("name", ["CAYU_ATTENTION_HANDOFF_URL", "CAYU_ATTENTION_HANDOFF_TOKEN"])
def test_one_variable_alone_is_a_configuration_error(no_environment: pytest.MonkeyPatch, name: str) -> None:
    no_environment.setenv(name, "http://127.0.0.1:1")

    with pytest.raises(ValueError, match="CAYU_ATTENTION_HANDOFF"):
        in_memory()


def test_handoff_configured_both_ways_is_refused(no_environment: pytest.MonkeyPatch) -> None:
    receiver = HumanAttentionReceiver(url="http://127.0.0.1:1", token="a-token-of-the-tests")
    handoff = HumanAttentionHandoff(receiver)

    with pytest.raises(ValueError, match="once"):
        in_memory(event_sinks=handoff.event_sinks(), human_attention_handoff=HumanAttentionHandoff(receiver))


def test_nothing_that_delivers_calls_what_resumes_a_session() -> None:
    """A receipt acknowledges transport: the rooms below the answers do not know how to resolve anything."""
    calls = re.compile(
        r"\.(resolve_\w+|recover_(user_input|tool_approval|tool_round)|reconcile_tool_effect|interrupt_session"
        r"|delete_session|resume)\("
    )
    files = [
        file
        for folder in ("config", "sinks", "reconciler", "worker/delivery", "worker/channels")
        for file in (ROOT / folder).rglob("*.py")
        if "reconciler/pauses" not in str(file) and "reconciler/pause_store" not in str(file)
    ]

    assert len(files) > 50
    assert [str(file.relative_to(ROOT)) for file in files if calls.search(file.read_text())] == []
