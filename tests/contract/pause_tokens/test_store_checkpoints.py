"""Requests and turns on the same database: durable, sealed, and only beside a durable record of redemptions."""

from typing import Any

import pytest
from cryptography.fernet import Fernet, InvalidToken
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.pause_store.checkpoints import SqlCheckpoints
from reconciler.pause_store.ledger import SqlTokenLedger
from reconciler.pause_store.tables import PAUSE_RECORDS
from reconciler.pauses import (
    DEFAULT_TTL,
    ConsumptionDurabilityError,
    HumanInteractionCapability,
    InMemoryConsumption,
    PayloadBindingError,
    ResumeCommand,
    TokenIssuanceLedger,
    ask_user_registration,
    human_interaction,
)
from tests.contract.pause_tokens.kit import ANSWER, QUESTION, TURN, JwsSigner, Rig, encode_token
from tests.contract.pause_tokens.store_kit import MAX, clock_at

PLACE = {"thread_id": "acme:_:s-1", "checkpoint_id": "cp-1", "key": "ask_user_request:call-1"}


class FernetSealer:
    """Seals with one key."""

    def __init__(self) -> None:
        self._fernet = Fernet(Fernet.generate_key())

    def seal(self, clear: bytes) -> bytes:
        return self._fernet.encrypt(clear)

    def unseal(self, sealed: bytes) -> bytes:
        try:
            return self._fernet.decrypt(sealed)
        except InvalidToken as error:
            raise ValueError("not sealed with this key") from error


SEALER = FernetSealer()


def checkpoints_on(engine: AsyncEngine) -> SqlCheckpoints:
    return SqlCheckpoints(engine, clock_at(), SEALER)


@pytest.mark.statement("S99")
async def test_records_are_written_replaced_read_and_forgotten(engine: AsyncEngine) -> None:
    checkpoints = checkpoints_on(engine)

    assert await checkpoints.read_metadata(**PLACE) is None
    for value in ("first", "é second"):
        await checkpoints.write_metadata(**PLACE, value=value, task_id="r-1")
        assert await checkpoints.read_metadata(**PLACE) == value
    assert await checkpoints.read_metadata(**PLACE | {"key": "another"}) is None
    for _ in range(2):
        await checkpoints.delete_metadata(**PLACE)
    assert await checkpoints.read_metadata(**PLACE) is None


@pytest.mark.statement("S99")
async def test_a_thread_stands_at_the_checkpoint_that_was_said_last(engine: AsyncEngine) -> None:
    checkpoints = checkpoints_on(engine)

    assert await checkpoints.resolve_checkpoint_id(thread_id="t") is None
    await checkpoints.set_current("t", "cp-1")
    await checkpoints.set_current("t", "cp-2")
    assert await checkpoints.resolve_checkpoint_id(thread_id="t") == "cp-2"
    assert checkpoints.durable is True


async def test_nothing_is_kept_in_clear(engine: AsyncEngine) -> None:
    await checkpoints_on(engine).write_metadata(**PLACE, value="SECRET question", task_id="r-1")

    async with engine.connect() as connection:
        row = (await connection.execute(select(PAUSE_RECORDS))).one()
    assert b"SECRET" not in row.sealed
    assert "s-1" not in row.place


@pytest.mark.statement("S16")
async def test_a_record_from_another_place_or_of_another_key_is_refused(engine: AsyncEngine) -> None:
    checkpoints = checkpoints_on(engine)
    await checkpoints.write_metadata(**PLACE, value="mine", task_id="r")
    await checkpoints.write_metadata(**PLACE | {"key": "other"}, value="another's", task_id="r")

    with pytest.raises(PayloadBindingError):
        await SqlCheckpoints(engine, clock_at(), FernetSealer()).read_metadata(**PLACE)
    async with engine.begin() as connection:
        mine, theirs = (await connection.execute(select(PAUSE_RECORDS.c.place, PAUSE_RECORDS.c.sealed))).all()
        for place, sealed in ((mine.place, theirs.sealed), (theirs.place, mine.sealed)):
            await connection.execute(update(PAUSE_RECORDS).where(PAUSE_RECORDS.c.place == place).values(sealed=sealed))
    for key in (PLACE["key"], "other"):
        with pytest.raises(PayloadBindingError):
            await checkpoints.read_metadata(**PLACE | {"key": key})


@pytest.mark.statement("S19", "S73", "S93")
async def test_durable_checkpoints_beside_a_volatile_record_are_refused_at_start(engine: AsyncEngine) -> None:
    checkpoints = checkpoints_on(engine)
    volatile: list[dict[str, Any]] = [
        {"consumption": InMemoryConsumption()},
        {"ledger": TokenIssuanceLedger(maximum_ttl_seconds=MAX)},
        {},
    ]

    for decider in volatile:
        with pytest.raises(ConsumptionDurabilityError):
            human_interaction(
                signer=JwsSigner(),
                binding=lambda _request: Rig().binding(),
                encode_token=encode_token,
                checkpoints=checkpoints,
                **decider,
            )


@pytest.mark.statement("S87", "S89", "S97")
async def test_a_run_pauses_in_one_life_and_resumes_in_another(engine: AsyncEngine) -> None:
    signer, clock = JwsSigner(), clock_at()

    def compiled() -> HumanInteractionCapability:
        return HumanInteractionCapability.compile(
            (ask_user_registration(),),
            signer=signer,
            ttl=DEFAULT_TTL,
            ledger=SqlTokenLedger(engine, clock, maximum_ttl_seconds=MAX),
            checkpoints=checkpoints_on(engine),
            clock=lambda: clock.now().timestamp(),
        )

    await checkpoints_on(engine).set_current("acme:_:s-1", "cp-1")
    event = await compiled().pause(
        "ask_user", QUESTION, binding=Rig().binding(), tool_call_id="call-1", turn_state=TURN
    )

    command = ResumeCommand(event.pause.envelope, ANSWER, Rig().scope, "s-1", "r-1", "call-1")
    outcome = await compiled().resume(command, require_turn=True)

    assert event.resumable is True
    assert outcome.turn is not None
    assert (outcome.checkpoint_id, outcome.turn.messages) == ("cp-1", TURN.messages)
