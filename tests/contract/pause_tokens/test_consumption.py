"""Who was first."""

import asyncio
import inspect

import pytest

from reconciler.pauses import (
    ConditionalWriteConsumption,
    ConsumptionDurabilityError,
    ConsumptionPort,
    InMemoryConsumption,
    InteractionConfigurationError,
    PauseTokenReplayedError,
    TokenIssuanceLedger,
    declared_durability,
    redemption_is_shared,
    require_durable_consumption,
)
from tests.contract.pause_tokens.kit import START, Clock, Rig, Store

RACERS = 32


@pytest.mark.statement("S69")
@pytest.mark.parametrize("consumption", [InMemoryConsumption(), ConditionalWriteConsumption(Store())], ids=type)
async def test_of_many_racers_exactly_one_wins(consumption: ConsumptionPort) -> None:
    claims = (consumption.claim("j", scope_hash="s", name="ask_user") for _ in range(RACERS))

    won = await asyncio.gather(*claims)

    assert sorted(won) == [False] * (RACERS - 1) + [True]
    assert await consumption.claim("other", scope_hash="s", name="ask_user") is True


@pytest.mark.statement("S11", "S69")
async def test_of_many_answers_exactly_one_resumes(rig: Rig) -> None:
    event = await rig.ask()

    outcomes = await asyncio.gather(*(rig.answer(event) for _ in range(RACERS)), return_exceptions=True)

    assert [type(outcome) for outcome in outcomes].count(PauseTokenReplayedError) == RACERS - 1


@pytest.mark.statement("S70")
async def test_a_claim_is_one_write_with_no_read_before_it() -> None:
    store = Store()

    await ConditionalWriteConsumption(store).claim("j", scope_hash="s", name="ask_user")

    assert store.calls == ["insert j"]
    assert inspect.getsource(ConditionalWriteConsumption.claim).count("await") == 1


@pytest.mark.statement("S70")
async def test_a_failing_store_decides_nothing(rig: Rig) -> None:
    event = await rig.ask()
    rig.store.failing = True

    with pytest.raises(ConnectionError):
        await rig.answer(event)
    rig.store.failing = False
    assert await rig.is_redeemable(event)


@pytest.mark.statement("S18", "S71")
def test_a_backend_without_its_one_verb_is_refused() -> None:
    with pytest.raises(InteractionConfigurationError, match="insert_if_absent"):
        ConditionalWriteConsumption(object())  # type: ignore[arg-type]  # that it is refused is the point


@pytest.mark.statement("S71")
def test_durability_is_stated_or_declared_and_silence_is_volatile() -> None:
    assert ConditionalWriteConsumption(Store(durable=True)).durable is True
    assert ConditionalWriteConsumption(Store(durable=None)).durable is False
    assert ConditionalWriteConsumption(Store(durable=None), durable=True).durable is True
    assert ConditionalWriteConsumption(Store(durable=True), durable=False).durable is False
    assert declared_durability(object()) is False


@pytest.mark.statement("S42", "S71")
async def test_a_redemption_is_recorded_with_its_time() -> None:
    store = Store()

    await ConditionalWriteConsumption(store, clock=Clock()).claim("j", scope_hash="s", name="n")

    row = store.rows["j"]
    assert (row.jti, row.scope_hash, row.name, row.consumed_at) == ("j", "s", "n", START)


@pytest.mark.statement("S72")
async def test_the_in_memory_record_is_volatile_and_can_be_cleared_for_fixtures() -> None:
    consumption = InMemoryConsumption()
    await consumption.claim("j", scope_hash="s", name="n")

    consumption.clear()

    assert consumption.durable is False
    assert await consumption.claim("j", scope_hash="s", name="n") is True


@pytest.mark.statement("S19", "S73")
@pytest.mark.parametrize("is_durable", [False, True])
@pytest.mark.parametrize("checkpoints_durable", [False, True])
def test_only_durable_pauses_beside_volatile_redemptions_are_refused(
    is_durable: bool, checkpoints_durable: bool
) -> None:
    consumption = ConditionalWriteConsumption(Store(), durable=is_durable)

    if checkpoints_durable and not is_durable:
        with pytest.raises(ConsumptionDurabilityError):
            require_durable_consumption(consumption, checkpoints_durable)
    else:
        require_durable_consumption(consumption, checkpoints_durable)


@pytest.mark.statement("S74")
def test_everything_but_the_in_memory_record_may_be_shared() -> None:
    assert redemption_is_shared(InMemoryConsumption()) is False
    assert redemption_is_shared(ConditionalWriteConsumption(Store())) is True
    assert redemption_is_shared(TokenIssuanceLedger(maximum_ttl_seconds=1)) is True
