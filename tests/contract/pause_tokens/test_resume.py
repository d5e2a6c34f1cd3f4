"""How a paused run is answered: seven steps that change nothing, and one that redeems."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.pauses import (
    CallBindingError,
    CheckpointLostError,
    PauseCheckpointNotFoundError,
    PauseTokenExpiredError,
    PauseTokenReplayedError,
    PauseTokenUnauthorizedError,
    PayloadBindingError,
    ResponseValidationError,
    ScopeBindingError,
    TurnCheckpoint,
    TurnStateNotRecordedError,
    UnknownInteractionError,
)
from tests.contract.pause_tokens.kit import START, TURN, AnySchema, Checkpoints, Rig, Scope, approval

OTHER = Scope("globex")


@pytest.mark.statement("S46", "S89")
async def test_an_answer_gives_everything_to_go_on_with(rig: Rig) -> None:
    event = await rig.ask()
    rig.clock.now += 42.5

    outcome = await rig.answer(event)

    assert outcome.payload.question == "Deploy to production?"
    assert outcome.response.answer == "Yes"
    assert (outcome.run_id, outcome.session_id, outcome.tool_call_id) == ("r-1", "s-1", "call-1")
    assert (outcome.cross_scope, outcome.time_to_resolve_seconds) == (False, 42.5)
    assert outcome.turn is not None
    assert outcome.turn.messages == TURN.messages


async def break_signature(rig: Rig, event: Any) -> dict[str, Any]:
    return {"envelope": rig.signer.sign(event.pause.envelope.payload, key=b"x" * 32)}


async def break_claims(rig: Rig, event: Any) -> dict[str, Any]:
    return {"envelope": rig.resigned(event.pause.claims, exp="soon")}


async def break_expiry(rig: Rig, event: Any) -> dict[str, Any]:
    rig.clock.now += 601
    return {}


async def break_registration(rig: Rig, event: Any) -> dict[str, Any]:
    return {"envelope": rig.resigned(event.pause.claims, name="nobody")}


async def break_axes(rig: Rig, event: Any) -> dict[str, Any]:
    return {"scope": OTHER}


async def break_request(rig: Rig, event: Any) -> dict[str, Any]:
    await rig.checkpoints.put("ask_user_request:call-1", '{"question": "edited"}')
    return {}


async def break_response(rig: Rig, event: Any) -> dict[str, Any]:
    return {"response": {"answer": ""}}


async def break_turn(rig: Rig, event: Any) -> dict[str, Any]:
    await rig.checkpoints.put(f"turn_state:{event.pause.claims.jti}", TurnCheckpoint(run_id="another").encode())
    return {}


STEPS: list[tuple[Any, type[Exception]]] = [
    (break_signature, PauseTokenUnauthorizedError),
    (break_claims, PauseTokenUnauthorizedError),
    (break_expiry, PauseTokenExpiredError),
    (break_registration, UnknownInteractionError),
    (break_axes, ScopeBindingError),
    (break_request, PayloadBindingError),
    (break_response, ResponseValidationError),
    (break_turn, TurnStateNotRecordedError),
]


@pytest.mark.statement("S89", "S90", "T4")
@pytest.mark.parametrize(("breaking", "error"), STEPS, ids=[step[0].__name__ for step in STEPS])
async def test_a_failure_before_the_last_step_leaves_the_token_good(
    rig: Rig, breaking: Any, error: type[Exception]
) -> None:
    event = await rig.ask()

    with pytest.raises(error):
        await rig.answer(event, **await breaking(rig, event))
    rig.clock.now = START
    await rig.checkpoints.restore()
    assert await rig.is_redeemable(event)


@pytest.mark.statement("S89", "T4")
@pytest.mark.parametrize("first", range(len(STEPS)))
async def test_of_several_faults_the_earliest_step_speaks(rig: Rig, first: int) -> None:
    """Everything from one step on is broken at once: signed-over faults first, so that each envelope stays whole."""
    event = await rig.ask()
    changes: dict[str, Any] = {}
    for breaking, _ in reversed(STEPS[first:]):
        changes |= await breaking(rig, event)

    with pytest.raises(STEPS[first][1]):
        await rig.answer(event, **changes)


@pytest.mark.statement("S89")
async def test_the_claim_is_the_last_thing_and_happens_once(rig: Rig) -> None:
    event = await rig.ask()
    rig.store.calls.clear()

    await rig.answer(event)

    assert [call.split()[0] for call in rig.store.calls] == (
        ["read", "insert"] if rig.mode == "operated" else ["insert"]
    )


@pytest.mark.statement("S89")
async def test_one_reading_of_the_clock_serves_every_step_before_the_claim(rig: Rig) -> None:
    event = await rig.ask()
    rig.clock.readings = 0

    await rig.answer(event)

    assert rig.clock.readings == 2  # the steps, and the redemption's own record


@pytest.mark.statement("S89")
async def test_a_turn_is_required_only_where_that_is_asked_for(rig: Rig) -> None:
    event = await rig.ask(turn=None)

    with pytest.raises(PauseCheckpointNotFoundError):
        await rig.answer(event, require_turn=True)
    assert (await rig.answer(event, require_turn=False)).turn is None


@pytest.mark.statement("S24", "S89")
async def test_a_turn_that_volatile_checkpoints_forgot_is_lost() -> None:
    rig = Rig(checkpoints=Checkpoints())
    event = await rig.ask(turn=None)

    with pytest.raises(CheckpointLostError):
        await rig.answer(event, require_turn=True)


@pytest.mark.statement("S23", "S89", "S90")
async def test_a_bad_answer_then_a_good_one(rig: Rig) -> None:
    event = await rig.ask()

    for bad in ({"answer": ""}, {"answer": 1}, {}, None, "Yes", {"answer": "Yes", "more": 1}):
        with pytest.raises(ResponseValidationError):
            await rig.answer(event, response=bad)
    assert (await rig.answer(event)).response.answer == "Yes"


async def no(response: Any, payload: Any) -> bool:
    return False


def complain(response: Any, payload: Any) -> None:
    if response["approved"] > payload["amount"]:
        raise LookupError("SECRET")


@pytest.mark.statement("S23", "S89")
@pytest.mark.parametrize("check", [complain, no, lambda response, payload: False])
async def test_an_answer_must_fit_its_question_too(rig: Rig, check: Any) -> None:
    rig = Rig(mode=rig.mode, registrations=(approval(validate_response=check),))
    event = await rig.capability.pause("approval", {"amount": 3}, binding=rig.binding())

    with pytest.raises(ResponseValidationError) as caught:
        await rig.answer(event, require_turn=False, response={"approved": 4})
    assert "SECRET" not in str(caught.value)


@pytest.mark.statement("S89")
async def test_a_check_that_is_satisfied_lets_the_answer_through(rig: Rig) -> None:
    rig = Rig(mode=rig.mode, registrations=(approval(validate_response=complain),))
    event = await rig.capability.pause("approval", {"amount": 3}, binding=rig.binding())

    assert (await rig.answer(event, require_turn=False, response={"approved": 3})).response == {"approved": 3}


@pytest.mark.statement("S16", "S89")
async def test_a_recorded_request_that_no_longer_has_its_shape_is_refused(rig: Rig) -> None:
    event = await rig.capability.pause("approval", {"amount": 3}, binding=rig.binding())
    changed = Rig(mode=rig.mode, registrations=(approval(payload_schema=AnySchema("amount", "currency")),))
    changed.signer, changed.store, changed.checkpoints = rig.signer, rig.store, rig.checkpoints
    capability = type(rig.capability)(
        registry=changed.capability.registry, service=rig.service, payloads=rig.capability.payloads, clock=rig.clock
    )
    working, rig.capability = rig.capability, capability

    with pytest.raises(PayloadBindingError) as caught:
        await rig.answer(event, require_turn=False, response={"approved": True})
    assert "SECRET" not in str(caught.value)
    rig.capability = working
    assert (await rig.answer(event, require_turn=False, response={"approved": True})).name == "approval"


@pytest.mark.statement("S11", "S90")
async def test_only_a_lost_claim_is_a_replay(rig: Rig) -> None:
    event = await rig.ask()
    await rig.answer(event)

    with pytest.raises(PauseTokenReplayedError):
        await rig.answer(event)
    with pytest.raises(ResponseValidationError):
        await rig.answer(event, response={})


@pytest.mark.statement("S91")
async def test_the_time_to_resolve_is_never_negative_and_is_zero_where_unknown(rig: Rig) -> None:
    event = await rig.ask()
    rig.clock.now -= 5
    assert (await rig.answer(event)).time_to_resolve_seconds == 0.0

    older = await rig.ask()
    envelope = rig.resigned(older.pause.claims, issued_at=0.0)
    rig.clock.now += 30
    assert (await rig.answer(older, envelope=envelope)).time_to_resolve_seconds == 0.0


@pytest.mark.statement("S44", "S92")
async def test_an_attempt_from_another_scope_is_audited_before_its_answer_is_looked_at(rig: Rig) -> None:
    rig = Rig(mode=rig.mode, registrations=(approval(cross_scope_allowed=True),))
    event = await rig.capability.pause("approval", {"amount": 1}, binding=rig.binding())

    with pytest.raises(ResponseValidationError):
        await rig.answer(event, scope=OTHER, response={})

    (attempt,) = rig.audited
    assert (attempt.name, attempt.jti, attempt.at) == ("approval", event.pause.claims.jti, START)
    assert attempt.interrupt_id == event.interrupt_id
    assert attempt.expected_scope_hash == event.pause.claims.scope_hash
    assert attempt.presented_scope_hash == rig.service.scope_hash(OTHER)


@pytest.mark.statement("S92")
async def test_an_attempt_that_cannot_be_audited_goes_no_further(rig: Rig) -> None:
    async def down(_attempt: Any) -> None:
        raise ConnectionError("the audit is down")

    rig = Rig(mode=rig.mode, registrations=(approval(cross_scope_allowed=True),))
    event = await rig.capability.pause("approval", {"amount": 1}, binding=rig.binding())
    working = rig.capability
    rig.capability = type(working)(
        registry=working.registry, service=rig.service, payloads=working.payloads, audit=down, clock=rig.clock
    )

    with pytest.raises(ConnectionError):
        await rig.answer(event, require_turn=False, scope=OTHER, response={"approved": True})
    rig.capability = working
    assert (await rig.answer(event, require_turn=False, response={"approved": True})).cross_scope is False


@pytest.mark.statement("S92")
async def test_an_attempt_from_its_own_scope_is_not_audited(rig: Rig) -> None:
    await rig.answer(await rig.ask())

    assert rig.audited == []


@pytest.mark.statement("S98")
async def test_two_pauses_of_one_run_are_told_apart_by_their_call(rig: Rig) -> None:
    first, second = await rig.ask(call="call-1"), await rig.ask(call="call-2")

    with pytest.raises(CallBindingError):
        await rig.answer(first, call_id="call-2")
    await rig.answer(second)
    assert await rig.is_redeemable(first)


async def test_no_refusal_quotes_the_answer(rig: Rig) -> None:
    event = await rig.ask()

    with pytest.raises(ResponseValidationError) as caught:
        await rig.answer(replace(event), response={"answer": 1, "SECRET": "SECRET"})
    assert "SECRET" not in str(caught.value).replace("SECRET: extra_forbidden", "")
    assert caught.value.__suppress_context__
