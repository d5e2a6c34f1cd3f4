"""Where request and turn are kept."""

import json
from dataclasses import replace
from typing import Any

import pytest

from reconciler.pauses import (
    CheckpointCommandPort,
    CheckpointLostError,
    InteractionConfigurationError,
    PauseCheckpointNotFoundError,
    PausePayloadStore,
    PayloadBindingError,
    TurnCheckpoint,
    TurnCheckpointStore,
    TurnStateNotRecordedError,
    hash_payload,
    payload_body,
)
from tests.contract.pause_tokens.kit import QUESTION, TURN, Checkpoints, Rig, claims

CLAIMS = claims(request_hash=hash_payload(QUESTION))


@pytest.mark.statement("S84")
async def test_a_request_is_recorded_word_for_word_for_its_run() -> None:
    checkpoints = Checkpoints()

    assert await PausePayloadStore(checkpoints).record(CLAIMS, QUESTION) is True
    assert checkpoints.writes == [
        {
            "thread_id": "acme:_:s-1",
            "checkpoint_id": "cp-1",
            "key": "ask_user_request:call-1",
            "value": payload_body(QUESTION),
            "task_id": "r-1",
        }
    ]


@pytest.mark.statement("S84")
async def test_a_request_that_could_not_be_recorded_is_said_so_and_is_no_error() -> None:
    checkpoints = Checkpoints()
    checkpoints.failing_keys = ("ask_user_request:",)

    assert await PausePayloadStore(checkpoints).record(CLAIMS, QUESTION) is False
    assert await PausePayloadStore().record(CLAIMS, QUESTION) is False


@pytest.mark.statement("S84")
async def test_a_refusal_about_the_request_itself_is_raised() -> None:
    checkpoints = Checkpoints()
    with pytest.raises(PayloadBindingError):
        await PausePayloadStore(checkpoints).record(CLAIMS, {"question": "another"})
    checkpoints.failing_keys, checkpoints.failure = ("ask_user_request:",), PayloadBindingError("too long")

    with pytest.raises(PayloadBindingError):
        await PausePayloadStore(checkpoints).record(CLAIMS, QUESTION)


@pytest.mark.statement("S85")
async def test_a_recorded_request_is_read_back() -> None:
    store = PausePayloadStore(Checkpoints())
    await store.record(CLAIMS, QUESTION)

    assert await store.load(CLAIMS) == QUESTION


@pytest.mark.statement("S18", "S85")
async def test_without_checkpoints_nothing_can_be_read() -> None:
    with pytest.raises(InteractionConfigurationError):
        await PausePayloadStore().load(CLAIMS)
    with pytest.raises(InteractionConfigurationError):
        await TurnCheckpointStore().load(CLAIMS)


@pytest.mark.statement("S24", "S25", "S85", "S86")
@pytest.mark.parametrize("store", [PausePayloadStore, TurnCheckpointStore])
@pytest.mark.parametrize(("durable", "error"), [(True, PauseCheckpointNotFoundError), (False, CheckpointLostError)])
async def test_what_is_not_there_was_lost_or_never_written(store: Any, durable: bool, error: type[Exception]) -> None:
    with pytest.raises(error):
        await store(Checkpoints(durable=durable)).load(CLAIMS)


@pytest.mark.statement("S16", "S85")
@pytest.mark.parametrize("text", ["", "{", "NaN", '{"question": NaN}', "[" * 100_000], ids=range(5))
async def test_a_recorded_request_that_is_not_json_is_refused(text: str) -> None:
    checkpoints = Checkpoints()
    await PausePayloadStore(checkpoints).record(CLAIMS, QUESTION)
    await checkpoints.write_metadata(**checkpoints.writes[0] | {"value": text})

    with pytest.raises(PayloadBindingError):
        await PausePayloadStore(checkpoints).load(CLAIMS)


@pytest.mark.statement("S86")
async def test_a_turn_is_recorded_as_the_tokens_own_and_read_anew_each_time() -> None:
    checkpoints = Checkpoints()
    store = TurnCheckpointStore(checkpoints)

    assert (store.wired, TurnCheckpointStore().wired) == (True, False)
    assert await store.record(CLAIMS, TURN) is True
    turn = await store.load(CLAIMS)
    await store.load(CLAIMS)
    assert (turn.prompt, turn.messages) == (TURN.prompt, TURN.messages)
    assert (turn.run_id, turn.session_id, turn.call_id, turn.jti) == ("r-1", "s-1", "call-1", CLAIMS.jti)
    assert checkpoints.reads == 2


@pytest.mark.statement("S86")
async def test_recording_a_turn_never_raises() -> None:
    checkpoints = Checkpoints()
    store = TurnCheckpointStore(checkpoints)

    assert await TurnCheckpointStore().record(CLAIMS, TURN) is False
    assert await store.record(CLAIMS, replace(TURN, messages=(object(),))) is False
    assert await store.record(CLAIMS, replace(TURN, run_id="another")) is False
    for failure in (ConnectionError("down"), PayloadBindingError("too long")):
        checkpoints.failing_keys, checkpoints.failure = ("turn_state:",), failure
        assert await store.record(CLAIMS, TURN) is False


async def recorded_turn(text: str) -> TurnCheckpointStore:
    checkpoints = Checkpoints(durable=True)
    store = TurnCheckpointStore(checkpoints)
    await store.record(CLAIMS, TURN)
    await checkpoints.write_metadata(**checkpoints.writes[0] | {"value": text})
    return store


@pytest.mark.statement("S16", "S86")
async def test_a_turn_that_cannot_be_read_is_refused_and_not_taken_for_none() -> None:
    store = await recorded_turn("{}")

    for read in (store.load, store.find):
        with pytest.raises(PayloadBindingError):
            await read(CLAIMS)


@pytest.mark.statement("S26", "S86")
@pytest.mark.parametrize("field", ["run_id", "session_id", "call_id", "jti"])
async def test_another_turn_is_refused_and_not_taken_for_none(field: str) -> None:
    own = {"run_id": "r-1", "session_id": "s-1", "call_id": "call-1", "jti": CLAIMS.jti}
    store = await recorded_turn(TurnCheckpoint("p", (), **(own | {field: "another"})).encode())

    for read in (store.load, store.find):
        with pytest.raises(TurnStateNotRecordedError):
            await read(CLAIMS)


@pytest.mark.statement("S86")
async def test_a_turn_that_was_never_kept_is_found_as_none() -> None:
    for store in (
        TurnCheckpointStore(),
        TurnCheckpointStore(Checkpoints()),
        TurnCheckpointStore(Checkpoints(durable=True)),
    ):
        assert await store.find(CLAIMS) is None


@pytest.mark.statement("S87")
async def test_request_and_turn_are_kept_through_the_same_commands(rig: Rig) -> None:
    event = await rig.ask()

    assert [write["key"] for write in rig.checkpoints.writes] == [
        "ask_user_request:call-1",
        f"turn_state:{event.pause.claims.jti}",
    ]
    assert json.loads(rig.checkpoints.writes[1]["value"])["prompt"] == TURN.prompt


@pytest.mark.statement("S99")
async def test_checkpoints_have_four_verbs_and_declare_their_durability() -> None:
    verbs = {name for name in vars(CheckpointCommandPort) if not name.startswith("_")}
    checkpoints = Checkpoints()
    place = {"thread_id": "t", "checkpoint_id": "c", "key": "k"}

    assert verbs == {"read_metadata", "write_metadata", "resolve_checkpoint_id", "delete_metadata"}
    assert (PausePayloadStore(Checkpoints(durable=True)).durable, PausePayloadStore(checkpoints).durable) == (
        True,
        False,
    )
    assert PausePayloadStore(object()).durable is False  # type: ignore[arg-type]  # silence is the point
    await checkpoints.write_metadata(**place, value="v", task_id="r")
    assert await checkpoints.read_metadata(**place) == "v"
    await checkpoints.delete_metadata(**place)
    assert await checkpoints.read_metadata(**place) is None
    assert await checkpoints.resolve_checkpoint_id(thread_id="t") is None
