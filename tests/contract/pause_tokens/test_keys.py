"""Under which names a pause is found again."""

import re

import pytest

from reconciler.pauses import PauseTokenService, PayloadBindingError, TurnCheckpoint
from reconciler.pauses.keys import interrupt_id_for, new_jti, payload_key, payload_key_of, turn_state_key
from tests.contract.pause_tokens.kit import TURN, Rig, claims


@pytest.mark.statement("S58")
def test_a_request_is_kept_under_its_call_or_its_interrupt() -> None:
    assert payload_key(name="ask_user", tool_call_id="c", interrupt_id="i") == "ask_user_request:c"
    assert payload_key(name="approval", tool_call_id="c", interrupt_id="i") == "interrupt_payload:i"
    assert payload_key_of(claims()) == "ask_user_request:call-1"


@pytest.mark.statement("S16", "S58")
@pytest.mark.parametrize(("name", "tool", "interrupt"), [("ask_user", "", "i"), ("approval", "c", "")])
def test_a_request_without_its_id_has_no_key(name: str, tool: str, interrupt: str) -> None:
    with pytest.raises(PayloadBindingError):
        payload_key(name=name, tool_call_id=tool, interrupt_id=interrupt)


@pytest.mark.statement("S16", "S59")
def test_a_turn_is_kept_under_its_token() -> None:
    assert turn_state_key("j") == "turn_state:j"
    with pytest.raises(PayloadBindingError):
        turn_state_key("")


@pytest.mark.statement("S59")
async def test_a_second_pause_on_one_call_keeps_the_first_ones_turn(rig: Rig) -> None:
    first = await rig.ask(turn=TurnCheckpoint(prompt="first"))
    second = await rig.ask(turn=TurnCheckpoint(prompt="second"))

    assert (await rig.capability.turns.load(first.pause.claims)).prompt == "first"
    assert (await rig.capability.turns.load(second.pause.claims)).prompt == "second"


@pytest.mark.statement("S60")
async def test_identifiers_have_their_documented_forms(rig: Rig) -> None:
    question = await rig.ask(turn=TURN)
    given = await rig.capability.pause("approval", {"amount": 1}, binding=rig.binding(), interrupt_id="mine")
    fresh = await rig.capability.pause("approval", {"amount": 1}, binding=rig.binding())

    assert (question.interrupt_id, given.interrupt_id) == ("", "mine")
    assert re.fullmatch(r"i-[0-9a-f]{12}", fresh.interrupt_id)
    assert interrupt_id_for("ask_user", "given") == ""
    assert re.fullmatch(r"[0-9a-f]{32}", new_jti())
    assert new_jti() != new_jti()


@pytest.mark.statement("S61")
async def test_an_envelope_says_which_schema_it_holds(rig: Rig) -> None:
    event = await rig.ask()

    assert event.pause.envelope.schema_id == PauseTokenService.SCHEMA_ID == "handbell.pause/v1"
