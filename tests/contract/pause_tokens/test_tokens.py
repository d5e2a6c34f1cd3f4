"""Minting, authenticating and redeeming a token."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.pauses import (
    InMemoryConsumption,
    InteractionConfigurationError,
    OperatedPlatformOnlyError,
    PauseTokenExpiredError,
    PauseTokenReplayedError,
    PauseTokenService,
    PauseTokenUnauthorizedError,
    ScopeBindingError,
    TokenIssuanceLedger,
    TokenTTLError,
    UnissuedTokenError,
)
from reconciler.pauses.claims import MAX_CLAIM_CHARS
from tests.contract.pause_tokens.kit import START, Envelope, JwsSigner, Pin, Rig, Scope, approval


@pytest.mark.statement("S18", "S62")
@pytest.mark.parametrize("lacking", ["mint", "verify"])
def test_a_signer_that_cannot_do_both_is_refused(lacking: str) -> None:
    signer: Any = JwsSigner()
    setattr(signer, lacking, None)

    with pytest.raises(InteractionConfigurationError, match=lacking):
        PauseTokenService(signer, consumption=InMemoryConsumption())


@pytest.mark.statement("S18", "S62")
def test_exactly_one_record_decides_redemptions() -> None:
    ledger = TokenIssuanceLedger(maximum_ttl_seconds=60)

    with pytest.raises(InteractionConfigurationError):
        PauseTokenService(JwsSigner())
    with pytest.raises(InteractionConfigurationError):
        PauseTokenService(JwsSigner(), consumption=InMemoryConsumption(), ledger=ledger)
    assert PauseTokenService(JwsSigner(), ledger=ledger).operated is True
    assert PauseTokenService(JwsSigner(), consumption=InMemoryConsumption()).operated is False


@pytest.mark.statement("S63")
async def test_a_token_is_minted_from_one_reading_of_the_clock(rig: Rig) -> None:
    rig.clock.readings = 0
    event = await rig.ask(root_run_id="r-0")
    plain = await rig.ask()

    assert rig.clock.readings == 2
    assert event.pause.claims.exp == int(START + 600) == 1_760_000_600
    assert event.pause.claims.issued_at == START
    assert (event.pause.claims.root_run_id, plain.pause.claims.root_run_id) == ("r-0", "r-1")


@pytest.mark.statement("S63")
async def test_an_issuance_is_recorded_with_the_signed_expiry() -> None:
    rig = Rig(mode="operated")
    event = await rig.ask()

    row = rig.store.rows[f"issued:{event.pause.claims.jti}"]
    assert row.expires_at == float(event.pause.claims.exp)
    assert row.issued_at == event.pause.claims.issued_at


@pytest.mark.statement("S63")
async def test_a_token_whose_issuance_is_not_recorded_never_leaves() -> None:
    rig = Rig(mode="operated")
    rig.store.failing = True

    with pytest.raises(ConnectionError):
        await rig.ask()
    assert rig.store.rows == {}
    assert rig.checkpoints.writes == []


@pytest.mark.statement("S29", "S63")
@pytest.mark.parametrize("seconds", [86_400.001, 0, -5, float("nan"), 0.5])
async def test_a_refused_lifetime_is_refused_before_anything_is_signed(rig: Rig, seconds: float) -> None:
    with pytest.raises(TokenTTLError):
        await rig.service.mint(rig.binding(), request_body="{}", ttl_seconds=seconds)
    assert rig.signer.minted == 0


@pytest.mark.statement("S63")
async def test_an_id_that_no_token_could_carry_back_is_refused_before_anything_is_signed(rig: Rig) -> None:
    for run_id in ("x" * (MAX_CLAIM_CHARS + 1), "a\0b"):
        with pytest.raises(InteractionConfigurationError, match="run_id"):
            await rig.service.mint(rig.binding(run_id=run_id), request_body="{}")
    assert rig.signer.minted == 0


@pytest.mark.statement("S8", "S64")
async def test_a_forged_edited_or_foreign_envelope_is_unauthorized_and_reads_no_record(rig: Rig) -> None:
    event = await rig.ask()
    good: Envelope = event.pause.envelope
    rig.store.calls.clear()
    reads = rig.checkpoints.reads
    forgeries: list[Any] = [
        rig.signer.sign(good.payload, key=b"x" * 32),
        replace(good, payload=good.payload.replace(b"s-1", b"s-2")),
        replace(good, token=good.token[:-4] + "AAAA"),
        replace(good, schema_id="another/v1"),
        replace(good, schema_id=""),
        replace(good, token=""),
        None,
        "text",
    ]

    for forgery in forgeries:
        with pytest.raises(PauseTokenUnauthorizedError) as caught:
            await rig.answer(replace(event, pause=replace(event.pause, envelope=forgery)))
        assert caught.value.code == "unauthorized"
    assert (rig.store.calls, rig.checkpoints.reads) == ([], reads)
    assert await rig.is_redeemable(event)


@pytest.mark.statement("S64")
async def test_a_schema_is_compared_by_the_reader_itself(rig: Rig) -> None:
    event = await rig.ask()

    class Careless(JwsSigner):
        def verify(self, envelope: Any, *, pinless_policy: Any, schema_id: str) -> Pin:
            return Pin()

    service = PauseTokenService(Careless(), consumption=InMemoryConsumption(), clock=rig.clock)
    with pytest.raises(PauseTokenUnauthorizedError, match="schema"):
        service.authenticate(replace(event.pause.envelope, schema_id="another/v1"))


@pytest.mark.statement("S9", "S64")
async def test_unreachable_keys_are_told_apart_and_the_token_stays_good(rig: Rig) -> None:
    event = await rig.ask()
    rig.signer.down = True

    with pytest.raises(PauseTokenUnauthorizedError) as caught:
        await rig.answer(event)
    rig.signer.down = False
    assert caught.value.code == "keyset_unavailable"
    assert await rig.is_redeemable(event)


@pytest.mark.statement("S65")
async def test_forged_comes_before_expired_and_expired_before_misplaced(rig: Rig) -> None:
    event = await rig.ask()
    forged = rig.signer.sign(event.pause.envelope.payload, key=b"x" * 32)
    rig.clock.now += 601

    with pytest.raises(PauseTokenUnauthorizedError):
        rig.service.validate(forged, scope=Scope("globex"))
    with pytest.raises(PauseTokenExpiredError):
        rig.service.validate(event.pause.envelope, scope=Scope("globex"))
    with pytest.raises(ScopeBindingError):
        rig.service.validate(event.pause.envelope, scope=Scope("globex"), at=START)


@pytest.mark.statement("S11", "S66")
async def test_validating_redeems_nothing_and_may_be_repeated(rig: Rig) -> None:
    event = await rig.ask()

    for _ in range(3):
        validated = rig.service.validate(event.pause.envelope, scope=Scope(), session_id="s-1")
    assert (validated.claims, validated.pin, validated.cross_scope) == (event.pause.claims, Pin(), False)
    await rig.service.validate_and_consume(event.pause.envelope, scope=Scope())
    with pytest.raises(PauseTokenReplayedError):
        await rig.service.validate_and_consume(event.pause.envelope, scope=Scope())


@pytest.mark.statement("S67")
async def test_what_is_written_is_the_minting_scope(rig: Rig) -> None:
    rig = Rig(mode=rig.mode, registrations=(approval(cross_scope_allowed=True),))
    event = await rig.capability.pause("approval", {"amount": 1}, binding=rig.binding())
    await rig.answer(event, require_turn=False, scope=Scope("globex"), response={"approved": True})

    jti = event.pause.claims.jti
    row = rig.store.rows[f"consumed:{jti}" if rig.mode == "operated" else jti]
    assert (row.scope_hash, row.name) == (event.pause.claims.scope_hash, "approval")


@pytest.mark.statement("S67")
async def test_a_redemption_is_one_claim(rig: Rig) -> None:
    event = await rig.ask()
    rig.store.calls.clear()

    await rig.service.validate_and_consume(event.pause.envelope, scope=Scope())

    assert len([call for call in rig.store.calls if call.startswith("insert")]) == 1


@pytest.mark.statement("S30", "S68")
async def test_a_library_keeps_no_ledger_to_prove_anything_from() -> None:
    service = Rig(mode="library").service

    with pytest.raises(OperatedPlatformOnlyError):
        await service.drain_proof()
    with pytest.raises(OperatedPlatformOnlyError):
        await service.record_retirement_horizon(START + 1, "over")


@pytest.mark.statement("S68")
async def test_an_operated_service_asks_its_ledger() -> None:
    rig = Rig(mode="operated")

    horizon = await rig.service.record_retirement_horizon(START + 1, "over")

    assert (await rig.service.drain_proof()).horizon == horizon


@pytest.mark.statement("S17")
async def test_a_genuine_token_that_was_never_issued_is_refused() -> None:
    rig = Rig(mode="operated")
    event = await rig.ask()
    stranger = rig.resigned(event.pause.claims, jti="b" * 32)

    with pytest.raises(UnissuedTokenError):
        await rig.service.validate_and_consume(stranger, scope=Scope())
