"""Which interactions there are."""

from typing import Any

import pytest

from reconciler.pauses import (
    AskUserPayload,
    DuplicateInteractionError,
    InteractionRegistration,
    InteractionRegistrationError,
    InteractionRegistry,
    InteractionSchema,
    UnknownInteractionError,
    ask_user_registration,
)
from tests.contract.pause_tokens.kit import AnySchema, Rig, approval


@pytest.mark.statement("S20")
@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""}, {"name": None}, {"name": "x" * 201}, {"payload_schema": dict}, {"response_schema": None},
        {"validate_response": "yes"}, {"cross_scope_allowed": "no"}, {"cross_scope_allowed": 1},
    ],
    ids=repr,
)  # fmt: skip
def test_an_interaction_that_cannot_be_described_is_refused_where_it_is_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(InteractionRegistrationError):
        approval(**wrong)


@pytest.mark.statement("S39")
def test_a_registrations_metadata_is_a_copy_that_nobody_changes() -> None:
    mine = {"team": "ops"}
    registration = approval(metadata=mine)
    mine["team"] = "other"

    assert registration.metadata == {"team": "ops"}
    with pytest.raises(TypeError):
        registration.metadata["team"] = "x"  # type: ignore[index]  # that it is refused is the point


@pytest.mark.statement("S21", "S101")
def test_a_name_is_claimed_once_and_the_first_stays() -> None:
    registry = InteractionRegistry([approval()])

    with pytest.raises(DuplicateInteractionError):
        registry.register(approval(cross_scope_allowed=True))
    with pytest.raises(DuplicateInteractionError):
        InteractionRegistry([approval(), approval()])
    assert registry.get("approval").cross_scope_allowed is False


@pytest.mark.statement("S22", "S101")
def test_a_registry_gives_what_was_registered_and_its_names_in_order() -> None:
    registry = InteractionRegistry()
    registry.register(ask_user_registration())
    registry.register(approval())

    assert registry.names() == ("approval", "ask_user")
    assert registry.get("ask_user").built_in is True
    with pytest.raises(UnknownInteractionError):
        registry.get("nobody")


@pytest.mark.statement("S100")
async def test_anything_that_validates_is_a_shape(rig: Rig) -> None:
    assert isinstance(AnySchema(), InteractionSchema)
    assert isinstance(AskUserPayload, InteractionSchema)
    assert isinstance(InteractionRegistration("n", AnySchema("a"), AnySchema()), InteractionRegistration)

    event = await rig.capability.pause("approval", {"amount": 1}, binding=rig.binding())
    assert (await rig.answer(event, require_turn=False, response={"approved": True})).payload == {"amount": 1}


@pytest.mark.statement("S96")
def test_the_built_in_question_is_closed_to_other_scopes_unless_opened() -> None:
    assert ask_user_registration().cross_scope_allowed is False
    assert ask_user_registration(cross_scope_allowed=True).cross_scope_allowed is True
