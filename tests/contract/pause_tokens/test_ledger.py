"""What an operated platform knows of its tokens."""

import asyncio
from typing import Any

import pytest

from reconciler.pauses import (
    BACKEND_VERBS,
    DEPLOYMENT,
    PROCESS,
    BackendIssuanceRecords,
    InProcessIssuanceRecords,
    InteractionConfigurationError,
    PauseClaims,
    RetirementHorizonError,
    TokenIssuanceLedger,
    TokenLedgerError,
    TokenTTLError,
    UnissuedTokenError,
)
from tests.contract.pause_tokens.kit import START, Clock, Pin, Rig, Store, claims

MAX = 86_400


class Ledger(TokenIssuanceLedger):
    """A ledger whose clock can be moved."""

    def __init__(self, **options: Any) -> None:
        self.time = Clock()
        super().__init__(maximum_ttl_seconds=MAX, clock=self.time, **options)


@pytest.fixture(params=["process", "backend", "store and backend"])
def ledger(request: pytest.FixtureRequest) -> Ledger:
    """A ledger on each kind of records."""
    options: dict[str, dict[str, Any]] = {
        "process": {},
        "backend": {"records": BackendIssuanceRecords(Store())},
        "store and backend": {"store": Store(), "records": BackendIssuanceRecords(Store())},
    }
    return Ledger(**options[request.param])


def token(jti: str = "a" * 32, **changes: Any) -> PauseClaims:
    return claims(jti=jti, **changes)


async def claim(ledger: TokenIssuanceLedger, jti: str = "a" * 32, **changes: Any) -> bool:
    usual: dict[str, Any] = {"scope_hash": claims().scope_hash, "name": "ask_user"}
    return await ledger.claim(jti, **(usual | changes))


@pytest.mark.statement("S29", "S75")
@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_ledger_has_a_longest_lifetime(seconds: float) -> None:
    with pytest.raises(TokenTTLError):
        TokenIssuanceLedger(maximum_ttl_seconds=seconds)


@pytest.mark.statement("S75")
async def test_a_given_store_stays_the_only_decider() -> None:
    store = Store()
    ledger = Ledger(store=store)
    await ledger.record_issuance(token())
    store.rows["a" * 32] = "redeemed in library mode"

    assert await claim(ledger) is False
    assert store.calls == ["insert " + "a" * 32]


@pytest.mark.statement("S76")
async def test_a_ledger_is_claimed_from_like_any_store(ledger: Ledger) -> None:
    await ledger.record_issuance(token())

    won = await asyncio.gather(*(claim(ledger) for _ in range(32)))

    assert sorted(won) == [False] * 31 + [True]
    with pytest.raises(UnissuedTokenError):
        await claim(ledger, "b" * 32)


@pytest.mark.statement("S28", "S76")
@pytest.mark.parametrize("wrong", [{"scope_hash": "0" * 16}, {"name": "approval"}])
async def test_a_claim_that_contradicts_its_issuance_redeems_nothing(ledger: Ledger, wrong: dict[str, str]) -> None:
    await ledger.record_issuance(token())

    with pytest.raises(TokenLedgerError):
        await claim(ledger, **wrong)
    assert await claim(ledger) is True


@pytest.mark.statement("S28")
async def test_an_id_is_issued_once(ledger: Ledger) -> None:
    await ledger.record_issuance(token())

    with pytest.raises(TokenLedgerError):
        await ledger.record_issuance(token())


@pytest.mark.statement("S77")
def test_a_ledger_is_as_durable_and_as_shared_as_its_weaker_record() -> None:
    durable, volatile = BackendIssuanceRecords(Store()), BackendIssuanceRecords(Store(durable=None))

    assert Ledger(records=durable, store=Store()).durable is True
    assert Ledger(records=durable).durable is True
    assert Ledger(records=volatile, store=Store()).durable is False
    assert Ledger(records=durable, store=Store(durable=None)).durable is False
    assert Ledger(store=Store()).durable is False
    assert Ledger(records=durable, store=Store()).deployment_wide is True
    assert Ledger(store=Store()).deployment_wide is False
    assert Ledger().deployment_wide is False


@pytest.mark.statement("S18", "S78", "S102")
@pytest.mark.parametrize("verb", BACKEND_VERBS)
def test_a_backend_that_lacks_a_verb_is_refused_by_its_name(verb: str) -> None:
    store = Store()
    setattr(store, verb, None)

    with pytest.raises(InteractionConfigurationError, match=verb):
        BackendIssuanceRecords(store)


@pytest.mark.statement("S78")
def test_records_in_process_claim_no_more_than_they_are() -> None:
    records = InProcessIssuanceRecords()

    assert (records.durable, records.shared) == (False, False)
    assert BackendIssuanceRecords(Store(durable=None), durable=True).durable is True


@pytest.mark.statement("S79")
async def test_outstanding_is_issued_unredeemed_and_unexpired_in_order(ledger: Ledger) -> None:
    for jti, exp in (("c", 1_760_000_600), ("a", 1_760_000_600), ("b", 1_760_000_600), ("d", 1_760_000_300)):
        await ledger.record_issuance(token(jti, exp=exp))
    await claim(ledger, "b")

    assert await ledger.outstanding() == ("a", "c", "d")
    assert await ledger.outstanding(1_760_000_300) == ("a", "c", "d")
    assert await ledger.outstanding(1_760_000_300.001) == ("a", "c")
    assert await ledger.outstanding(1_760_000_601) == ()


@pytest.mark.statement("S27", "S80")
@pytest.mark.parametrize("at", [START, START - 1, float("nan"), float("inf")])
async def test_a_horizon_lies_in_the_future(ledger: Ledger, at: float) -> None:
    with pytest.raises(RetirementHorizonError):
        await ledger.record_retirement_horizon(at, "over")
    assert await ledger.drain_deadline() is None


@pytest.mark.statement("S27", "S80")
async def test_the_first_horizon_stands_for_good(ledger: Ledger) -> None:
    first = await ledger.record_retirement_horizon(START + 10, "first")

    for at, reason in ((START + 10, "first"), (START + 20, "second")):
        with pytest.raises(RetirementHorizonError, match="first"):
            await ledger.record_retirement_horizon(at, reason)
    assert (await ledger.drain_proof()).horizon == first


@pytest.mark.statement("S80")
async def test_of_many_horizons_exactly_one_is_recorded(ledger: Ledger) -> None:
    outcomes = await asyncio.gather(
        *(ledger.record_retirement_horizon(START + 10 + n, str(n)) for n in range(16)), return_exceptions=True
    )

    assert [type(outcome) for outcome in outcomes].count(RetirementHorizonError) == 15


@pytest.mark.statement("S81")
async def test_the_deadline_is_the_horizon_and_the_longest_lifetime(ledger: Ledger) -> None:
    assert await ledger.drain_deadline() is None

    await ledger.record_retirement_horizon(START + 10, "over")

    assert await ledger.drain_deadline() == START + 10 + MAX


@pytest.mark.statement("S82")
async def test_the_retired_format_is_over_only_when_that_is_proven(ledger: Ledger) -> None:
    await ledger.record_issuance(token("pinned", legacy_pinned=True))
    await ledger.record_issuance(token("plain"))

    assert (await ledger.drain_proof()).drained is False
    await ledger.record_retirement_horizon(START + 10, "over")
    assert (await ledger.drain_proof(START + 9)).drained is False
    at_horizon = await ledger.drain_proof(START + 10)
    assert (at_horizon.drained, at_horizon.outstanding) == (False, ("pinned",))
    assert (await ledger.drain_proof(1_760_000_600)).drained is False
    assert (await ledger.drain_proof(1_760_000_600.001)).drained is True
    by_time = await ledger.drain_proof(START + 10 + MAX + 0.001)
    assert (by_time.drained, by_time.deadline) == (True, START + 10 + MAX)
    assert "lifetime has passed" in by_time.reason


@pytest.mark.statement("S82")
async def test_a_redeemed_legacy_token_is_not_waited_for(ledger: Ledger) -> None:
    await ledger.record_issuance(token(legacy_pinned=True))
    await ledger.record_retirement_horizon(START + 10, "over")
    await claim(ledger)

    assert (await ledger.drain_proof(START + 10)).drained is True


@pytest.mark.statement("S43", "S82")
async def test_a_proof_reaches_as_far_as_its_records() -> None:
    shared = Ledger(records=BackendIssuanceRecords(Store()), store=Store())

    assert (await shared.drain_proof()).scope is DEPLOYMENT
    assert (await Ledger().drain_proof()).scope is PROCESS
    assert (await Ledger(store=Store()).drain_proof()).scope is PROCESS


@pytest.mark.statement("S83")
async def test_from_the_horizon_on_the_retired_format_is_not_issued(ledger: Ledger) -> None:
    await ledger.record_retirement_horizon(START + 10, "over")

    await ledger.record_issuance(token("a", issued_at=START + 9.9, legacy_pinned=True))
    await ledger.record_issuance(token("b", issued_at=START + 10))
    with pytest.raises(RetirementHorizonError):
        await ledger.record_issuance(token("c", issued_at=START + 10, legacy_pinned=True))
    assert "c" not in await ledger.outstanding()


@pytest.mark.statement("S29", "S83")
@pytest.mark.parametrize("exp", [int(START) + MAX + 1, int(START)])
async def test_an_issuance_outside_the_longest_lifetime_is_refused(ledger: Ledger, exp: int) -> None:
    with pytest.raises(TokenTTLError):
        await ledger.record_issuance(token(exp=exp))
    assert await ledger.outstanding() == ()


@pytest.mark.statement("S102", "S103")
async def test_an_issuance_keeps_the_pins_vector_and_nothing_where_there_is_none() -> None:
    ledger = Ledger()

    assert (await ledger.record_issuance(token("a"), pin=Pin("v-9"))).vector_hash == "v-9"
    assert (await ledger.record_issuance(token("b"), pin=object())).vector_hash == ""


@pytest.mark.statement("S102")
async def test_a_service_in_operated_mode_issues_redeems_and_lists_through_its_ledger() -> None:
    rig = Rig(mode="operated")
    assert rig.ledger is not None
    first, second = await rig.ask(), await rig.ask(call="call-2")

    await rig.answer(first)

    assert await rig.ledger.outstanding() == (second.pause.claims.jti,)
