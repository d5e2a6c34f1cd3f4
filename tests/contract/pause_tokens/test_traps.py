"""The traps in the documentation itself, each avoided. T3 is in test_claims, T4 in test_resume, T7 in test_values."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.pauses import (
    InteractionConfigurationError,
    ScopeBindingError,
    TokenIssuanceLedger,
    hash_scope,
    hash_scope_exactly,
    human_interaction,
    thread_id_for,
)
from tests.contract.pause_tokens.kit import Clock, JwsSigner, Rig, Scope, encode_token

PART = st.text(alphabet="ab:_", max_size=4)
OPTIONAL = st.none() | PART


@pytest.mark.statement("T1", "S50")
@pytest.mark.parametrize(
    "scope",
    [Scope("a:b", "c"), Scope("a", "b:c"), Scope("_"), Scope("a", "_"), Scope("a", None, "_"), Scope("a", None, "b:")],
)
def test_identifiers_that_would_make_two_scopes_one_are_refused(scope: Scope) -> None:
    with pytest.raises(ScopeBindingError):
        hash_scope(scope)


@pytest.mark.statement("T1", "S57")
@pytest.mark.parametrize("scope", [Scope("a:b", "c"), Scope("a", "b:c"), Scope("_"), Scope("a", "_")])
def test_identifiers_that_would_make_two_threads_one_are_refused(scope: Scope) -> None:
    with pytest.raises(InteractionConfigurationError):
        thread_id_for(scope, "s")


@pytest.mark.statement("T1")
@given(st.lists(st.tuples(PART.filter(bool), OPTIONAL, OPTIONAL), min_size=2, max_size=6, unique=True))
def test_no_two_scopes_share_an_exact_hash(parts: list[tuple[str, str | None, str | None]]) -> None:
    distinct = {(tenant, sub or None, namespace or None) for tenant, sub, namespace in parts}

    assert len({hash_scope_exactly(Scope(*ids)) for ids in distinct}) == len(distinct)
    assert all(len(hash_scope_exactly(Scope(*ids))) == 64 for ids in distinct)


@pytest.mark.statement("T1")
@given(st.lists(st.tuples(PART.filter(bool), OPTIONAL, OPTIONAL), min_size=2, max_size=6, unique=True))
def test_no_two_scopes_share_a_documented_hash_either(parts: list[tuple[str, str | None, str | None]]) -> None:
    seen: dict[str, tuple[str, str | None, str | None]] = {}
    for tenant, sub, namespace in parts:
        try:
            hashed = hash_scope(Scope(tenant, sub, namespace))
        except ScopeBindingError:
            continue
        ids = (tenant, sub or None, namespace or None)
        assert seen.setdefault(hashed, ids) == ids


@pytest.mark.statement("T1")
async def test_a_tenant_cannot_redeem_anothers_token_by_shifting_a_colon(rig: Rig) -> None:
    event = await rig.ask()

    for scope in (Scope("acme:_"), Scope("acme", "_"), Scope("acme", "_:_")):
        with pytest.raises(ScopeBindingError):
            await rig.answer(event, scope=scope)
    for pausing, resuming in itertools.permutations([Scope("a", "b:c"), Scope("a:b", "c")], 2):
        with pytest.raises(ScopeBindingError):
            await rig.ask(scope=pausing, thread_id="t", checkpoint_id="c")
        with pytest.raises(ScopeBindingError):
            await rig.answer(event, scope=resuming)


@pytest.mark.statement("T2", "S95")
def test_a_ledger_given_to_the_factory_is_the_only_decider() -> None:
    ledger = TokenIssuanceLedger(maximum_ttl_seconds=60, clock=Clock())

    capability = human_interaction(
        signer=JwsSigner(), binding=lambda _request: Rig().binding(), encode_token=encode_token, ledger=ledger
    )

    assert capability.service.consumption is ledger
    assert capability.service.operated is True
