"""What is handed from step to step: the fields, their order and their defaults."""

import dataclasses
import json
from typing import Any

import pydantic
import pytest

from reconciler import pauses
from reconciler.pauses import (
    DEFAULT_TTL,
    AskUserPayload,
    AskUserResponse,
    DrainProof,
    InteractionRegistration,
    RetirementHorizon,
    TokenTTLError,
    TTLPolicy,
    TurnCheckpoint,
)
from tests.contract.pause_tokens.kit import Rig

REQUIRED = dataclasses.MISSING
SHAPES: list[tuple[str, str, dict[str, Any]]] = [
    ("S36", "MintedPause", {"envelope": REQUIRED, "claims": REQUIRED}),
    ("S36", "ValidatedPause", {"claims": REQUIRED, "pin": REQUIRED, "cross_scope": False}),
    ("S37", "PauseBinding", {
        "pin": None, "scope": None, "run_id": "", "root_run_id": "", "session_id": "", "thread_id": "",
        "checkpoint_id": None,
    }),
    ("S38", "InteractionEvent", {
        "name": REQUIRED, "payload": REQUIRED, "pause": REQUIRED, "run_id": REQUIRED, "session_id": REQUIRED,
        "interrupt_id": "", "tool_call_id": "", "resumable": False,
    }),
    ("S40", "InteractionToolSpec", {
        "name": REQUIRED, "description": REQUIRED, "coroutine": REQUIRED, "parameters": (),
    }),
    ("S41", "IssuedToken", {
        "jti": REQUIRED, "scope_hash": REQUIRED, "name": REQUIRED, "issued_at": REQUIRED, "expires_at": REQUIRED,
        "legacy_pinned": False, "vector_hash": "",
    }),
    ("S42", "ConsumptionRecord", {"jti": REQUIRED, "scope_hash": REQUIRED, "name": "ask_user", "consumed_at": 0.0}),
    ("S43", "RetirementHorizon", {"at": REQUIRED, "reason": REQUIRED}),
    ("S43", "DrainProof", {
        "drained": REQUIRED, "outstanding": REQUIRED, "reason": REQUIRED, "horizon": None, "deadline": None,
        "scope": "process",
    }),
    ("S44", "CrossScopeRedemption", {
        "name": REQUIRED, "interrupt_id": REQUIRED, "jti": REQUIRED, "expected_scope_hash": REQUIRED,
        "presented_scope_hash": REQUIRED, "at": REQUIRED,
    }),
    ("S45", "ResumeCommand", {
        "envelope": REQUIRED, "response": REQUIRED, "scope": REQUIRED, "session_id": None, "run_id": None,
        "call_id": None,
    }),
    ("S46", "ResumeOutcome", {
        "name": REQUIRED, "thread_id": REQUIRED, "checkpoint_id": REQUIRED, "payload": REQUIRED,
        "response": REQUIRED, "run_id": REQUIRED, "session_id": REQUIRED, "tool_call_id": "", "interrupt_id": "",
        "cross_scope": False, "time_to_resolve_seconds": 0.0, "turn": None,
    }),
]  # fmt: skip


@pytest.mark.statement("S36", "S37", "S38", "S40", "S41", "S42", "S43", "S44", "S45", "S46")
@pytest.mark.parametrize(("number", "name", "shape"), SHAPES, ids=[shape[1] for shape in SHAPES])
def test_each_value_has_its_fields_in_order(number: str, name: str, shape: dict[str, Any]) -> None:
    fields = dataclasses.fields(getattr(pauses, name))

    assert [(field.name, field.default) for field in fields] == list(shape.items())


@pytest.mark.statement("S39")
def test_a_registration_has_its_fields_and_the_built_in_one_is_marked() -> None:
    names = [field.name for field in dataclasses.fields(InteractionRegistration)]
    built_in = InteractionRegistration.ask_user()
    mine = InteractionRegistration("approval", AskUserPayload, AskUserResponse)

    assert names == [
        "name", "payload_schema", "response_schema", "validate_response", "cross_scope_allowed", "built_in", "metadata",
    ]  # fmt: skip
    assert (built_in.name, built_in.built_in, built_in.metadata) == ("ask_user", True, {})
    assert InteractionRegistration.ask_user(metadata={"team": "ops"}).metadata == {"team": "ops"}
    assert (mine.validate_response, mine.cross_scope_allowed, mine.built_in, mine.metadata) == (None, False, False, {})


@pytest.mark.statement("S41", "S42", "T7")
async def test_a_ledgers_records_name_no_session_run_call_or_answer_and_the_event_does() -> None:
    rig = Rig(mode="operated")
    event = await rig.ask()
    await rig.answer(event)

    rows = " ".join(repr(row) for row in rig.store.rows.values())
    assert not any(word in rows for word in ("s-1", "r-1", "call-1", "Deploy", "Yes"))
    assert (event.session_id, event.run_id, event.tool_call_id, event.resumable) == ("s-1", "r-1", "call-1", True)


@pytest.mark.statement("S43")
def test_a_drain_proof_says_by_default_that_it_reaches_this_process_only() -> None:
    proof = DrainProof(False, (), "why")

    assert proof.scope is pauses.PROCESS
    assert (proof.horizon, proof.deadline) == (None, None)
    assert RetirementHorizon(1.0, "x") == RetirementHorizon(at=1.0, reason="x")


@pytest.mark.statement("S46")
async def test_an_outcome_says_where_to_go_on_as_graph_runtimes_take_it(rig: Rig) -> None:
    outcome = await rig.answer(await rig.ask())

    assert outcome.as_configurable() == {"configurable": {"thread_id": "acme:_:s-1", "checkpoint_id": "cp-1"}}


@pytest.mark.statement("S47")
@pytest.mark.parametrize(
    ("shape", "field", "longest"), [(AskUserPayload, "question", 4_000), (AskUserResponse, "answer", 10_000)]
)
def test_question_and_answer_are_one_bounded_text_each(shape: Any, field: str, longest: int) -> None:
    assert list(shape.model_fields) == [field]
    assert getattr(shape.model_validate({field: "x" * longest}), field) == "x" * longest
    for wrong in ({field: ""}, {field: "x" * (longest + 1)}, {field: 1}, {}, {field: "x", "more": 1}):
        with pytest.raises(pydantic.ValidationError):
            shape.model_validate(wrong)


@pytest.mark.statement("S29", "S48")
@pytest.mark.parametrize("seconds", [0, -1, 86_400.001, float("nan"), float("inf")])
def test_a_lifetime_outside_its_bound_is_refused_and_never_clamped(seconds: float) -> None:
    with pytest.raises(TokenTTLError):
        DEFAULT_TTL.resolve(seconds)


@pytest.mark.statement("S48")
def test_a_lifetime_is_the_default_or_the_one_asked_for() -> None:
    assert TTLPolicy(600, 86_400) == DEFAULT_TTL
    assert (DEFAULT_TTL.resolve(None), DEFAULT_TTL.resolve(86_400), DEFAULT_TTL.resolve(0.5)) == (600, 86_400, 0.5)
    with pytest.raises(TokenTTLError):
        TTLPolicy(default_seconds=61, maximum_seconds=60).resolve()


@pytest.mark.statement("S49")
def test_a_turn_is_written_and_read_back() -> None:
    turn = TurnCheckpoint(prompt="é", messages=({"a": [1, None]}, "text"), run_id="r")

    assert TurnCheckpoint.decode(turn.encode()) == turn


def recorded(**changes: Any) -> str:
    whole = {"prompt": "", "messages": [], "run_id": "", "session_id": "", "call_id": "", "jti": ""}
    return json.dumps(whole | changes)


UNREADABLE = [
    "", "{", "[]", "{}", "null", None, b"{}", "NaN", "[" * 100_000,
    recorded(prompt=1), recorded(messages={}), recorded(run_id=None), recorded(more=""),
]  # fmt: skip


@pytest.mark.statement("S49")
@pytest.mark.parametrize("raw", UNREADABLE, ids=range(len(UNREADABLE)))
def test_a_turn_that_cannot_be_read_is_a_value_error(raw: Any) -> None:
    with pytest.raises(ValueError):
        TurnCheckpoint.decode(raw)


async def test_no_repr_shows_a_token_a_question_or_an_answer(rig: Rig) -> None:
    event = await rig.ask()
    outcome = await rig.answer(event)

    shown = f"{event!r} {event.pause!r} {outcome!r}"
    assert event.pause.envelope.token not in shown
    assert "Deploy" not in shown
    assert "Yes" not in shown
