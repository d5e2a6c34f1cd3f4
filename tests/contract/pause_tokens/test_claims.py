"""What a token says: its fields, its bytes, and when it is over."""

import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.pauses import LEGACY_CLAIM_KEYS, PauseClaims, PauseTokenExpiredError, PauseTokenUnauthorizedError
from reconciler.pauses.claims import ADDED_CLAIM_KEYS, MAX_CLAIM_CHARS, MAX_EPOCH_SECONDS, REQUIRED_CLAIM_KEYS
from tests.contract.pause_tokens.kit import Rig, claims

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


@pytest.mark.statement("S31")
def test_there_are_fourteen_claims_in_the_documented_order() -> None:
    fields = [(field.name, field.default) for field in dataclasses.fields(PauseClaims)]

    missing = dataclasses.MISSING
    assert fields == [
        ("run_id", missing), ("session_id", missing), ("scope_hash", missing), ("thread_id", missing),
        ("checkpoint_id", missing), ("request_hash", missing), ("exp", missing), ("jti", missing),
        ("root_run_id", ""), ("tool_call_id", ""), ("name", "ask_user"), ("interrupt_id", ""),
        ("issued_at", 0.0), ("legacy_pinned", False),
    ]  # fmt: skip
    with pytest.raises(dataclasses.FrozenInstanceError):
        claims().exp = 1  # type: ignore[misc]  # that it is refused is the point


@pytest.mark.statement("S32")
def test_eleven_claims_are_the_older_formats_and_eight_are_required() -> None:
    assert len(LEGACY_CLAIM_KEYS) == 11
    assert {"root_run_id", "issued_at", "legacy_pinned"} == ADDED_CLAIM_KEYS
    assert {
        "run_id", "session_id", "scope_hash", "thread_id", "checkpoint_id", "request_hash", "exp", "jti",
    } == REQUIRED_CLAIM_KEYS  # fmt: skip


@pytest.mark.statement("S32", "S34")
def test_a_token_of_the_older_format_is_read() -> None:
    older = json.dumps(claims().as_legacy_dict()).encode()

    assert PauseClaims.decode(older) == claims(root_run_id="", issued_at=0.0)


@pytest.mark.statement("S33")
def test_the_bytes_are_canonical() -> None:
    encoded = claims(session_id="é").encode()

    assert claims().as_legacy_dict().keys() == LEGACY_CLAIM_KEYS
    assert encoded.isascii()
    assert b'"session_id":"\\u00e9"' in encoded
    assert encoded == json.dumps(json.loads(encoded), separators=(",", ":"), sort_keys=True).encode()


@pytest.mark.statement("S33")
@given(
    texts=st.lists(TEXT, min_size=11, max_size=11),
    exp=st.integers(1, MAX_EPOCH_SECONDS),
    issued_at=st.floats(0, MAX_EPOCH_SECONDS),
    pinned=st.booleans(),
)
def test_reading_returns_what_was_written(texts: list[str], exp: int, issued_at: float, pinned: bool) -> None:
    names = [field.name for field in dataclasses.fields(PauseClaims) if field.type is str]
    written = PauseClaims(**dict(zip(names, texts, strict=True)), exp=exp, issued_at=issued_at, legacy_pinned=pinned)

    assert PauseClaims.decode(written.encode()) == written
    assert written.misfit() is None


@pytest.mark.statement("S34")
@pytest.mark.parametrize("raw", [b"", b"{", b"nothing", b"\xff\xfe", "{}", None, b"[]", b"1", b'"text"', b"null"])
def test_a_body_that_is_no_set_of_claims_is_unauthorized(raw: Any) -> None:
    with pytest.raises(PauseTokenUnauthorizedError):
        PauseClaims.decode(raw)


@pytest.mark.statement("S34")
def test_an_unknown_claim_is_named_and_refused() -> None:
    body = json.loads(claims().encode()) | {"admin": True}

    with pytest.raises(PauseTokenUnauthorizedError, match="'admin'"):
        PauseClaims.decode(json.dumps(body).encode())


@pytest.mark.statement("S34")
@pytest.mark.parametrize("key", sorted(REQUIRED_CLAIM_KEYS))
def test_a_missing_claim_is_named_and_refused(key: str) -> None:
    body = json.loads(claims().encode())
    del body[key]

    with pytest.raises(PauseTokenUnauthorizedError, match=repr(key)):
        PauseClaims.decode(json.dumps(body).encode())


@pytest.mark.statement("S34")
async def test_claims_are_read_only_after_the_signer_vouched_for_them(rig: Rig) -> None:
    event = await rig.ask()
    forged = rig.signer.sign(b"not even JSON", key=b"x" * 32)

    with pytest.raises(PauseTokenUnauthorizedError, match="Signature"):
        rig.service.authenticate(forged)
    assert rig.service.authenticate(event.pause.envelope).claims == event.pause.claims


@pytest.mark.statement("S35")
@pytest.mark.parametrize(
    ("now", "is_over"),
    [(1_760_000_599.0, False), (1_760_000_600.0, False), (1_760_000_600.001, True), (math.nan, True)],
)
def test_a_token_lives_through_the_instant_of_its_expiry(now: float, is_over: bool) -> None:
    assert claims().expired(now) is is_over


@pytest.mark.statement("S10", "S35")
async def test_expiry_is_exact_on_both_sides(rig: Rig) -> None:
    event = await rig.ask()
    rig.clock.now = float(event.pause.claims.exp) + 0.001

    with pytest.raises(PauseTokenExpiredError):
        await rig.answer(event)
    rig.clock.now = float(event.pause.claims.exp)
    assert await rig.is_redeemable(event)


WRONG_VALUES: list[tuple[str, Any]] = [
    ("exp", "1760000600"), ("exp", "abc"), ("exp", True), ("exp", None), ("exp", 1.5e9), ("exp", 0), ("exp", -1),
    ("exp", MAX_EPOCH_SECONDS + 1), ("exp", 10**400), ("exp", [1]),
    ("issued_at", "0"), ("issued_at", True), ("issued_at", None), ("issued_at", -1), ("issued_at", 10**400),
    ("legacy_pinned", 1), ("legacy_pinned", "yes"), ("legacy_pinned", None),
    ("run_id", 7), ("run_id", None), ("jti", ["a"]), ("name", {}), ("session_id", True),
    ("session_id", "x" * (MAX_CLAIM_CHARS + 1)), ("thread_id", "a\0b"), ("scope_hash", "\ud800"),
]  # fmt: skip


@pytest.mark.statement("T3")
@pytest.mark.parametrize(("key", "value"), WRONG_VALUES, ids=lambda value: repr(value)[:20])
async def test_a_signed_claim_of_the_wrong_type_is_unauthorized_and_no_crash(key: str, value: Any) -> None:
    rig = Rig()
    event = await rig.ask()

    with pytest.raises(PauseTokenUnauthorizedError, match=repr(key)):
        rig.service.authenticate(rig.resigned(event.pause.claims, **{key: value}))


@pytest.mark.statement("T3")
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000])
@pytest.mark.parametrize("key", ["exp", "issued_at"])
async def test_a_number_that_is_none_never_makes_a_token_immortal(key: str, number: str) -> None:
    rig = Rig()
    body = json.loads((await rig.ask()).pause.claims.encode())
    kept = json.dumps({name: value for name, value in body.items() if name != key})
    envelope = rig.signer.sign(f'{kept[:-1]}, "{key}": {number}}}'.encode())
    rig.clock.now += 10**9

    with pytest.raises(PauseTokenUnauthorizedError):
        rig.service.authenticate(envelope)


@pytest.mark.statement("T3")
@pytest.mark.parametrize("key", ["exp", "jti", "name"])
async def test_a_claim_that_stands_twice_is_refused(key: str) -> None:
    rig = Rig()
    encoded = (await rig.ask()).pause.claims.encode()
    again = json.dumps({key: json.loads(encoded)[key]})
    envelope = rig.signer.sign(encoded[:-1] + b"," + again.encode()[1:])

    with pytest.raises(PauseTokenUnauthorizedError):
        rig.service.authenticate(envelope)


@pytest.mark.statement("T3")
@pytest.mark.parametrize("raw", [b"[" * 60_000, b'{"a":' * 9_000, b" " * 65_537, '{"exp":1}'.encode("utf-16")])
def test_a_body_made_to_exhaust_or_to_confuse_the_reader_is_refused(raw: bytes) -> None:
    with pytest.raises(PauseTokenUnauthorizedError):
        PauseClaims.decode(raw)
