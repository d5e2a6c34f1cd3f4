"""Every refusal is a class of its own, in its documented place."""

import pytest

from reconciler import pauses
from reconciler.pauses import HumanInteractionError, PauseTokenError, PauseTokenUnauthorizedError
from reconciler.pauses.errors import availability_code
from tests.contract.pause_tokens.kit import KeysetDownError

BASES = [
    ("S7", "PauseTokenError", "HumanInteractionError"),
    ("S8", "PauseTokenUnauthorizedError", "PauseTokenError"),
    ("S10", "PauseTokenExpiredError", "PauseTokenError"),
    ("S11", "PauseTokenReplayedError", "PauseTokenError"),
    ("S12", "ScopeBindingError", "PauseTokenError"),
    ("S13", "SessionBindingError", "PauseTokenError"),
    ("S14", "RunBindingError", "PauseTokenError"),
    ("S15", "CallBindingError", "PauseTokenError"),
    ("S16", "PayloadBindingError", "PauseTokenError"),
    ("S17", "UnissuedTokenError", "PauseTokenError"),
    ("S18", "InteractionConfigurationError", "HumanInteractionError"),
    ("S19", "ConsumptionDurabilityError", "InteractionConfigurationError"),
    ("S20", "InteractionRegistrationError", "HumanInteractionError"),
    ("S21", "DuplicateInteractionError", "InteractionRegistrationError"),
    ("S22", "UnknownInteractionError", "HumanInteractionError"),
    ("S23", "ResponseValidationError", "HumanInteractionError"),
    ("S24", "CheckpointLostError", "HumanInteractionError"),
    ("S25", "PauseCheckpointNotFoundError", "HumanInteractionError"),
    ("S26", "TurnStateNotRecordedError", "HumanInteractionError"),
    ("S27", "RetirementHorizonError", "HumanInteractionError"),
    ("S28", "TokenLedgerError", "HumanInteractionError"),
    ("S29", "TokenTTLError", "HumanInteractionError"),
    ("S30", "OperatedPlatformOnlyError", "HumanInteractionError"),
]
BUILTIN_BASES = {
    "InteractionConfigurationError": ValueError,
    "InteractionRegistrationError": ValueError,
    "UnknownInteractionError": KeyError,
    "ResponseValidationError": ValueError,
    "TokenTTLError": ValueError,
}


@pytest.mark.statement("S7", "S8", "S10", "S11", "S12", "S13", "S14", "S15", "S16", "S17", "S18", "S19")
@pytest.mark.statement("S20", "S21", "S22", "S23", "S24", "S25", "S26", "S27", "S28", "S29", "S30")
@pytest.mark.parametrize(("number", "name", "base"), BASES)
def test_each_refusal_stands_in_its_place(number: str, name: str, base: str) -> None:
    error = getattr(pauses, name)

    assert error.__bases__[0] is getattr(pauses, base)
    assert error.__bases__[1:] == ((BUILTIN_BASES[name],) if name in BUILTIN_BASES else ())


@pytest.mark.statement("S6")
def test_one_class_catches_every_refusal() -> None:
    refusals = [getattr(pauses, name) for name in pauses.__all__ if name.endswith("Error")]

    assert len(refusals) == 24
    assert HumanInteractionError.__bases__ == (Exception,)
    assert all(issubclass(refusal, HumanInteractionError) for refusal in refusals)


@pytest.mark.statement("S8")
def test_a_code_replaces_the_classs_only_where_one_is_given() -> None:
    assert PauseTokenUnauthorizedError("why").code == "unauthorized"
    assert PauseTokenUnauthorizedError("why", code=None).code == "unauthorized"
    assert PauseTokenUnauthorizedError("why", code="other").code == "other"
    assert PauseTokenUnauthorizedError.code == "unauthorized"
    assert str(PauseTokenUnauthorizedError("why", code="other")) == "why"


@pytest.mark.statement("S9")
def test_a_signers_refusal_keeps_its_class_and_its_availability() -> None:
    refused = PauseTokenUnauthorizedError.from_signer_refusal(ValueError("bad signature"))
    unreachable = PauseTokenUnauthorizedError.from_signer_refusal(KeysetDownError("vault sealed"))

    assert type(refused) is type(unreachable) is PauseTokenUnauthorizedError
    assert str(refused).endswith("not accepted: bad signature")
    assert (refused.code, unreachable.code) == ("unauthorized", "keyset_unavailable")


@pytest.mark.statement("S9")
@pytest.mark.parametrize("code", ["expired", 503, None, True])
def test_a_foreign_code_is_not_taken_for_availability(code: object) -> None:
    cause = ValueError("x")
    cause.code = code  # type: ignore[attr-defined]  # a stranger's exception may carry anything

    assert availability_code(cause) is None
    assert PauseTokenUnauthorizedError.from_signer_refusal(cause).code == "unauthorized"


@pytest.mark.statement("S14")
def test_another_run_is_not_caught_as_another_session() -> None:
    assert not issubclass(pauses.RunBindingError, pauses.SessionBindingError)


@pytest.mark.statement("S17")
def test_an_unissued_token_is_not_an_unauthorized_one() -> None:
    assert not issubclass(pauses.UnissuedTokenError, PauseTokenUnauthorizedError)
    assert issubclass(pauses.UnissuedTokenError, PauseTokenError)


@pytest.mark.statement("S22")
def test_an_unknown_interaction_is_a_key_error_that_reads_as_a_sentence() -> None:
    with pytest.raises(KeyError) as caught:
        pauses.InteractionRegistry().get("nobody")

    assert str(caught.value) == "no interaction is registered under the name 'nobody'"
