"""Where a token belongs, and which request it is about."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from reconciler.pauses import (
    AskUserPayload,
    CallBindingError,
    InteractionConfigurationError,
    PauseTokenError,
    PayloadBindingError,
    RunBindingError,
    ScopeBinder,
    ScopeBindingError,
    SessionBindingError,
    call_id_of,
    hash_payload,
    hash_payload_body,
    hash_scope,
    payload_body,
    thread_id_for,
)
from tests.contract.pause_tokens.kit import QUESTION, Rig, Scope, approval, claims

OTHER = Scope("globex")
IDENTIFIER = st.text(min_size=1, max_size=20).filter(
    lambda text: ":" not in text and text != "_" and text.isprintable()
)


@pytest.mark.statement("S50")
@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope("t1", "s1"), "ba3ea6968821cad4"),
        (Scope("t1"), "b0bb2a925e284841"),
        (Scope("t1", ""), "b0bb2a925e284841"),
        (Scope("acme"), "90f54e1caf436719"),
        (Scope("acme", "eu"), "442d6dffff624d6f"),
    ],
)
def test_the_scope_hash_is_the_documented_one(scope: Scope, expected: str) -> None:
    assert hash_scope(scope) == expected


@pytest.mark.statement("S50")
@given(tenant=IDENTIFIER, sub=st.none() | IDENTIFIER, namespace=st.none() | IDENTIFIER)
def test_the_scope_hash_follows_its_formula(tenant: str, sub: str | None, namespace: str | None) -> None:
    text = f"{tenant}:{sub or '_'}:{namespace or '_'}"

    assert hash_scope(Scope(tenant, sub, namespace)) == hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.statement("S12", "S50")
@pytest.mark.parametrize("scope", [Scope(None), Scope(""), None, object()])
def test_a_scope_without_a_tenant_is_refused(scope: object) -> None:
    with pytest.raises(ScopeBindingError):
        hash_scope(scope)


class Pair(BaseModel):
    b: int
    a: str


@pytest.mark.statement("S51")
def test_the_payload_hash_is_of_one_text() -> None:
    payload = {"b": 1, "a": "é"}

    assert hash_payload(payload) == "d73913efb309b5986cdc9592ec8697c5a024c2240ce3217cf777d396c4e383ad"
    assert hash_payload(payload) == hash_payload_body(payload_body(payload))
    assert payload_body({"x": {1, 2}.__class__}) == '{"x": "<class \'set\'>"}'


@pytest.mark.statement("S51")
def test_a_model_is_hashed_by_its_own_text() -> None:
    model = Pair(b=1, a="é")

    assert payload_body(model) == model.model_dump_json()
    assert hash_payload(model).startswith("763b30b9")


@pytest.mark.statement("S51", "S84")
async def test_mint_and_record_use_one_text_for_a_model(rig: Rig) -> None:
    model = AskUserPayload(question="é?")
    event = await rig.capability.pause("ask_user", model, binding=rig.binding(), tool_call_id="c")

    assert rig.checkpoints.writes[0]["value"] == model.model_dump_json()
    assert event.pause.claims.request_hash == hash_payload(model)
    assert await rig.is_redeemable(event)


@pytest.mark.statement("S52")
@pytest.mark.parametrize(("tool", "interrupt", "call"), [("t", "", "t"), ("", "i", "i"), ("t", "i", "t"), ("", "", "")])
def test_the_call_is_the_tool_call_before_the_interrupt(tool: str, interrupt: str, call: str) -> None:
    assert call_id_of(claims(tool_call_id=tool, interrupt_id=interrupt)) == call


AXES: list[tuple[str, dict[str, Any], type[PauseTokenError]]] = [
    ("S12", {"scope": OTHER}, ScopeBindingError),
    ("S13", {"session_id": "s-2"}, SessionBindingError),
    ("S14", {"run_id": "r-2"}, RunBindingError),
    ("S15", {"call_id": "call-2"}, CallBindingError),
]


@pytest.mark.statement("S12", "S13", "S14", "S15", "S53")
@pytest.mark.parametrize(("number", "wrong", "error"), AXES, ids=[axis[0] for axis in AXES])
async def test_one_wrong_axis_alone_is_refused_and_burns_nothing(
    rig: Rig, number: str, wrong: dict[str, Any], error: type[PauseTokenError]
) -> None:
    event = await rig.ask()

    with pytest.raises(error) as caught:
        await rig.answer(event, **wrong)
    assert type(caught.value) is error
    assert await rig.is_redeemable(event)


@pytest.mark.statement("S53")
@pytest.mark.parametrize("first", range(4))
async def test_the_first_mismatch_in_order_decides_the_error(rig: Rig, first: int) -> None:
    event = await rig.ask()
    wrong = {key: value for _, axis, _ in AXES[first:] for key, value in axis.items()}

    with pytest.raises(AXES[first][2]):
        await rig.answer(event, **wrong)


@pytest.mark.statement("S53")
def test_an_axis_that_is_not_stated_is_not_compared_and_an_empty_one_is() -> None:
    binder = ScopeBinder()
    token = claims()

    assert binder.check(token, scope=Scope()) is False
    for axis, error in (
        ("session_id", SessionBindingError),
        ("run_id", RunBindingError),
        ("call_id", CallBindingError),
    ):
        with pytest.raises(error):
            binder.check(token, scope=Scope(), **{axis: ""})  # type: ignore[arg-type]  # one axis at a time
    assert binder.check(token, scope=OTHER, cross_scope_allowed=True) is True
    assert binder.check(token, scope=Scope(), cross_scope_allowed=True) is False


@pytest.mark.statement("S54")
@pytest.mark.parametrize(("number", "wrong", "error"), AXES[1:], ids=[axis[0] for axis in AXES[1:]])
async def test_an_open_scope_does_not_open_session_run_or_call(
    number: str, wrong: dict[str, Any], error: type[PauseTokenError]
) -> None:
    rig = Rig(registrations=(approval(cross_scope_allowed=True),))
    event = await rig.capability.pause("approval", {"amount": 1}, binding=rig.binding())

    with pytest.raises(error):
        await rig.answer(event, scope=OTHER, response={"approved": True}, **wrong)
    outcome = await rig.answer(event, require_turn=False, scope=OTHER, response={"approved": True})
    assert outcome.cross_scope is True


@pytest.mark.statement("S55")
async def test_only_the_tokens_own_registration_opens_its_scope(rig: Rig) -> None:
    event = await rig.ask()
    authenticated = rig.service.authenticate(event.pause.envelope)

    for registration in (None, approval(cross_scope_allowed=True)):
        with pytest.raises(ScopeBindingError):
            rig.service.bind(authenticated, scope=OTHER, registration=registration)


@pytest.mark.statement("S16", "S56")
def test_a_request_is_proven_by_its_hash() -> None:
    binder = ScopeBinder()
    token = claims(request_hash=hash_payload(QUESTION))

    binder.check_payload(token, QUESTION)
    assert binder.payload_body_matches(token, payload_body(QUESTION))
    with pytest.raises(PayloadBindingError):
        binder.check_payload(token, {"question": "Deploy to staging?"})


@pytest.mark.statement("S16", "S56")
async def test_a_request_edited_after_the_mint_is_refused(rig: Rig) -> None:
    event = await rig.ask()
    write = rig.checkpoints.writes[0]
    edited = write | {"value": json.dumps({"question": "Deploy to staging?"}, sort_keys=True)}
    await rig.checkpoints.write_metadata(**edited)

    with pytest.raises(PayloadBindingError):
        await rig.answer(event)
    await rig.checkpoints.write_metadata(**write)
    assert await rig.is_redeemable(event)


@pytest.mark.statement("S56")
async def test_a_request_that_its_backend_reformatted_is_still_the_one(rig: Rig) -> None:
    event = await rig.ask()
    await rig.checkpoints.write_metadata(
        **rig.checkpoints.writes[0] | {"value": '{\n  "question": "Deploy to production?"\n}'}
    )

    assert await rig.is_redeemable(event)


@pytest.mark.statement("S57")
def test_a_thread_is_tenant_sub_tenant_and_session() -> None:
    assert thread_id_for(Scope("acme", "eu", "prod"), "s:1") == "acme:eu:s:1"
    assert thread_id_for(Scope("acme"), "s-1") == "acme:_:s-1"


@pytest.mark.statement("S18", "S57")
@pytest.mark.parametrize(("scope", "session"), [(Scope(None), "s"), (Scope(""), "s"), (None, "s"), (Scope(), "")])
def test_a_thread_without_tenant_or_session_is_refused(scope: object, session: str) -> None:
    with pytest.raises(InteractionConfigurationError):
        thread_id_for(scope, session)


@pytest.mark.statement("S107")
async def test_what_was_presented_and_what_was_hashed_can_be_asked_for(rig: Rig) -> None:
    event = await rig.ask()

    assert rig.service.scope_hash(OTHER) == hash_scope(OTHER)
    assert ScopeBinder().request_body(QUESTION) == payload_body(QUESTION) == rig.checkpoints.writes[0]["value"]
    assert hash_payload_body(ScopeBinder().request_body(QUESTION)) == event.pause.claims.request_hash


def circle() -> dict[str, Any]:
    payload: dict[str, Any] = {}
    payload["self"] = payload
    return payload


@pytest.mark.statement("S16")
@pytest.mark.parametrize("payload", [circle(), {1: "a", "b": 2}], ids=["circle", "mixed keys"])
def test_a_request_that_has_no_text_is_refused(payload: Any) -> None:
    with pytest.raises(PayloadBindingError):
        ScopeBinder().request_body(payload)
