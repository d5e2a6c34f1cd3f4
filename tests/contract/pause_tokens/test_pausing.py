"""How a run pauses, and what a failed pause leaves behind: nothing."""

from typing import Any

import pytest

from reconciler.pauses import (
    InteractionConfigurationError,
    PauseCheckpointNotFoundError,
    PayloadBindingError,
    ScopeBindingError,
    TurnCheckpoint,
    UnknownInteractionError,
)
from tests.contract.pause_tokens.kit import QUESTION, TURN, Checkpoints, Rig, Scope, approval

REFUSED: list[tuple[str, Any, dict[str, Any], dict[str, Any], type[Exception]]] = [
    ("nobody", QUESTION, {}, {"tool_call_id": "c"}, UnknownInteractionError),
    ("ask_user", {"question": ""}, {}, {"tool_call_id": "c"}, PayloadBindingError),
    ("ask_user", {"question": "x", "n": float("nan")}, {}, {"tool_call_id": "c"}, PayloadBindingError),
    ("ask_user", QUESTION, {}, {}, PayloadBindingError),
    ("ask_user", QUESTION, {"session_id": ""}, {"tool_call_id": "c"}, InteractionConfigurationError),
    ("ask_user", QUESTION, {"session_id": "s-9"}, {"tool_call_id": "c"}, PauseCheckpointNotFoundError),
    ("ask_user", QUESTION, {"scope": Scope("a:b"), "thread_id": "t", "checkpoint_id": "c"}, {"tool_call_id": "c"},
     ScopeBindingError),
]  # fmt: skip


@pytest.mark.statement("S16", "S22", "S25", "S88")
@pytest.mark.parametrize(("name", "payload", "binding", "ids", "error"), REFUSED, ids=range(len(REFUSED)))
async def test_a_refused_pause_mints_nothing_and_leaves_nothing(
    rig: Rig, name: str, payload: Any, binding: dict[str, Any], ids: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await rig.capability.pause(name, payload, binding=rig.binding(**binding), turn_state=TURN, **ids)

    assert (rig.signer.minted, rig.store.rows, rig.checkpoints.writes) == (0, {}, [])


@pytest.mark.statement("S88")
async def test_refusals_come_in_the_documented_order(rig: Rig) -> None:
    nowhere = rig.binding(session_id="s-9")

    with pytest.raises(UnknownInteractionError):
        await rig.capability.pause("nobody", {}, binding=nowhere)
    with pytest.raises(PayloadBindingError, match="does not fit"):
        await rig.capability.pause("ask_user", {}, binding=nowhere)
    with pytest.raises(PayloadBindingError, match="no id"):
        await rig.capability.pause("ask_user", QUESTION, binding=nowhere)
    with pytest.raises(PauseCheckpointNotFoundError):
        await rig.capability.pause("ask_user", QUESTION, binding=nowhere, tool_call_id="c")


@pytest.mark.statement("S88")
async def test_the_token_comes_before_the_records_and_the_request_before_the_turn() -> None:
    rig = Rig(mode="operated")
    order: list[str] = []
    mint, write, insert = rig.signer.mint, rig.checkpoints.write_metadata, rig.store.insert_if_absent

    def minting(**arguments: Any) -> Any:
        order.append("mint")
        return mint(**arguments)

    async def writing(**arguments: Any) -> Any:
        order.append(arguments["key"].split(":")[0])
        return await write(**arguments)

    async def inserting(key: str, record: object) -> bool:
        order.append(key.split(":")[0])
        return await insert(key, record)

    rig.signer.mint, rig.checkpoints.write_metadata, rig.store.insert_if_absent = minting, writing, inserting  # type: ignore[method-assign]  # spies

    await rig.ask()

    assert order == ["mint", "issued", "ask_user_request", "turn_state"]


@pytest.mark.statement("S38", "S88")
async def test_a_pause_is_resumable_only_where_everything_needed_was_recorded(rig: Rig) -> None:
    assert (await rig.ask(turn=TURN)).resumable is True
    assert (await rig.ask(turn=None)).resumable is False
    assert (await rig.ask(turn=TurnCheckpoint(messages=(object(),)))).resumable is False
    for failing in ("turn_state:", "ask_user_request:"):
        rig.checkpoints.failing_keys = (failing,)
        assert (await rig.ask(turn=TURN)).resumable is False


@pytest.mark.statement("S38", "S88")
async def test_without_checkpoints_a_pause_stands_and_is_not_resumable() -> None:
    rig = Rig()
    rig.capability = type(rig.capability)(
        registry=rig.capability.registry, service=rig.service, payloads=type(rig.capability.payloads)()
    )

    event = await rig.ask(checkpoint_id="cp-1")

    assert event.resumable is False
    assert rig.service.authenticate(event.pause.envelope).claims == event.pause.claims


@pytest.mark.statement("S37", "S88")
async def test_what_the_run_states_comes_before_what_can_be_worked_out(rig: Rig) -> None:
    stated = await rig.ask(thread_id="mine", checkpoint_id="cp-9")
    found = await rig.ask()

    assert (stated.pause.claims.thread_id, stated.pause.claims.checkpoint_id) == ("mine", "cp-9")
    assert (found.pause.claims.thread_id, found.pause.claims.checkpoint_id) == ("acme:_:s-1", "cp-1")


@pytest.mark.statement("S38")
async def test_the_event_says_where_the_run_paused(rig: Rig) -> None:
    event = await rig.capability.pause("approval", {"amount": 3}, binding=rig.binding(), tool_call_id="c-1")

    assert (event.name, event.payload, event.run_id, event.session_id) == ("approval", {"amount": 3}, "r-1", "s-1")
    assert (event.tool_call_id, event.interrupt_id) == ("c-1", event.pause.claims.interrupt_id)


async def test_no_refusal_quotes_the_request(rig: Rig) -> None:
    for name, payload in (("ask_user", {"question": "SECRET", "more": 1}), ("approval", {"SECRET": 1})):
        with pytest.raises(PayloadBindingError) as caught:
            await rig.capability.pause(name, payload, binding=rig.binding(), tool_call_id="c")
        assert "SECRET" not in str(caught.value)
        assert caught.value.__suppress_context__


async def test_one_question_can_be_asked_of_a_custom_shape() -> None:
    rig = Rig(registrations=(approval(name="ask_user"),), checkpoints=Checkpoints())

    event = await rig.capability.pause("ask_user", {"amount": 1}, binding=rig.binding(), tool_call_id="c")

    assert event.interrupt_id == ""
