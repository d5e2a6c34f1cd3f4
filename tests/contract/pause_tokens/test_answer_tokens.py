"""Handbell's own answer tokens: little in the link, everything in the row, read as strictly as a pause token."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock
from reconciler.pause_store.answers import AnswerStore
from reconciler.pause_store.ledger import SqlTokenLedger
from reconciler.pause_store.tables import ISSUANCE
from reconciler.pauses import (
    DEFAULT_TTL,
    PauseTokenExpiredError,
    PauseTokenUnauthorizedError,
    ScopeBindingError,
    TokenTTLError,
    hash_scope_exactly,
)
from tests.contract.pause_tokens.keyset_kit import Keys
from tests.contract.pause_tokens.kit import START, Scope
from tests.contract.pause_tokens.store_kit import MAX, answer, clock_at, rows
from tests.support.databases import engine_for
from worker.answers.claims import AnswerClaims
from worker.answers.errors import KeysetUnavailableError
from worker.answers.signer import JwsSigner, open_token
from worker.answers.tokens import SCHEMA_ID, AnswerRequest, AnswerTokens

SCOPE = Scope("a:b", "c", "prod")
REQUEST = AnswerRequest(
    scope=SCOPE,
    namespace="prod",
    attention_id="a-1",
    source="cayu",
    recipient_ref="alice@example.com",
    channel="mail",
    session_id="acme:eu:sess1",
    run_id="run-7",
    call_id="call-9",
    request_hash="5" * 64,
)
SAID = AnswerClaims(jti="a" * 32, exp=1_760_000_600, scope_hash="f" * 64, request_hash="5" * 64)


class Desk:
    """Answer tokens on a database."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.clock: FrozenClock = clock_at()
        self.keys = Keys()
        self.signer = JwsSigner(self.keys, self.clock)
        self.ledger = SqlTokenLedger(engine, self.clock, maximum_ttl_seconds=MAX)
        self.tokens = AnswerTokens(self.signer, self.ledger, self.clock, ttl=DEFAULT_TTL)

    def signed(self, payload: bytes, schema_id: str = SCHEMA_ID) -> str:
        return self.signer.mint(pin=None, payload=payload, schema_id=schema_id).token


@pytest.fixture
def desk(engine: AsyncEngine) -> Desk:
    """Answer tokens on each kind of database."""
    return Desk(engine)


@pytest.mark.statement("T7")
async def test_a_link_shows_little_and_the_row_has_the_rest(desk: Desk, engine: AsyncEngine) -> None:
    token = await desk.tokens.mint(REQUEST)

    said = json.loads(open_token(token).payload)
    assert said.keys() == {"exp", "jti", "request_hash", "scope_hash"}
    assert len(token) < 450
    assert said["scope_hash"] == hash_scope_exactly(SCOPE)
    async with engine.connect() as connection:
        row = (await connection.execute(select(ISSUANCE))).one()
    assert (row.jti, row.expires_at, row.scope_hash, row.request_hash) == (
        said["jti"],
        float(said["exp"]),
        said["scope_hash"],
        "5" * 64,
    )
    assert (row.session_id, row.run_id, row.call_id) == ("acme:eu:sess1", "run-7", "call-9")
    assert (row.namespace, row.attention_id, row.recipient_ref, row.channel, row.source, row.key_id) == (
        "prod",
        "a-1",
        "alice@example.com",
        "mail",
        "cayu",
        "k1",
    )
    assert token not in repr(row)


@pytest.mark.statement("S35")
async def test_a_token_is_authenticated_through_the_instant_of_its_expiry(desk: Desk) -> None:
    token = await desk.tokens.mint(REQUEST, ttl_seconds=60)
    exp = int(START + 60)

    assert desk.tokens.authenticate(token, now=float(exp)).exp == exp
    with pytest.raises(PauseTokenExpiredError):
        desk.tokens.authenticate(token, now=exp + 0.001)


async def test_an_authenticated_token_redeems_its_answer_once(desk: Desk, engine: AsyncEngine) -> None:
    claims = desk.tokens.authenticate(await desk.tokens.mint(REQUEST), now=START)

    acceptance = await AnswerStore(engine).accept(answer(claims.jti, scope_hash=claims.scope_hash))

    assert acceptance.is_repeated is False
    assert await desk.ledger.outstanding() == ()


async def test_a_refused_mint_records_nothing(desk: Desk, engine: AsyncEngine) -> None:
    for seconds in (0, MAX + 1, 0.5):
        with pytest.raises(TokenTTLError):
            await desk.tokens.mint(REQUEST, ttl_seconds=seconds)
    with pytest.raises(ScopeBindingError):
        await desk.tokens.mint(replace(REQUEST, scope=Scope(None)))
    desk.keys.is_down = True
    with pytest.raises(KeysetUnavailableError):
        await desk.tokens.mint(REQUEST)
    assert await rows(engine, ISSUANCE) == 0


WRONG: list[dict[str, Any]] = [
    {"exp": "1760000600"}, {"exp": True}, {"exp": 1760000600.0}, {"exp": None}, {"exp": 10**400}, {"jti": 1},
    {"jti": "a\0"}, {"scope_hash": None}, {"request_hash": ["5"]}, {"admin": True}, {"jti": "x" * 2049},
]  # fmt: skip


@pytest.fixture
def dry_desk() -> Desk:
    """Answer tokens that never get as far as a database."""
    return Desk(engine_for("sqlite:////nowhere/handbell.db"))


@pytest.mark.statement("T3")
@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_signed_claim_of_the_wrong_type_is_unauthorized(dry_desk: Desk, wrong: dict[str, Any]) -> None:
    token = dry_desk.signed(json.dumps(json.loads(SAID.encode()) | wrong).encode())

    with pytest.raises(PauseTokenUnauthorizedError):
        dry_desk.tokens.authenticate(token, now=START)


@pytest.mark.statement("T3")
@pytest.mark.parametrize("missing", ["exp", "jti", "request_hash", "scope_hash"])
def test_a_missing_doubled_or_numberless_claim_is_unauthorized(dry_desk: Desk, missing: str) -> None:
    body = json.loads(SAID.encode())
    kept = {key: value for key, value in body.items() if key != missing}
    texts = [json.dumps(kept), json.dumps(body)[:-1] + f', "{missing}": {json.dumps(body[missing])}}}']
    texts += [json.dumps(kept)[:-1] + f', "{missing}": {number}}}' for number in ("NaN", "Infinity", "1e999")]

    for text in texts:
        with pytest.raises(PauseTokenUnauthorizedError):
            dry_desk.tokens.authenticate(dry_desk.signed(text.encode()), now=START)


@pytest.mark.statement("S8", "S61")
def test_a_runtimes_token_is_no_answer_token(dry_desk: Desk) -> None:
    token = dry_desk.signed(SAID.encode(), "handbell.pause/v1")

    with pytest.raises(PauseTokenUnauthorizedError):
        dry_desk.tokens.authenticate(token, now=START)
    assert dry_desk.tokens.authenticate(dry_desk.signed(SAID.encode()), now=START) == SAID


@pytest.mark.statement("S9", "S65")
def test_forged_and_expired_is_forged_and_unreachable_keys_are_neither(dry_desk: Desk) -> None:
    token = dry_desk.signed(SAID.encode())
    late = START + timedelta(days=9).total_seconds()

    with pytest.raises(PauseTokenUnauthorizedError) as forged:
        dry_desk.tokens.authenticate(token[:-4] + "AAAA", now=late)
    dry_desk.keys.is_down = True
    with pytest.raises(PauseTokenUnauthorizedError) as unreachable:
        dry_desk.tokens.authenticate(token, now=late)
    assert (forged.value.code, unreachable.value.code) == ("unauthorized", "keyset_unavailable")
    for refusal in (forged, unreachable):
        assert token[:20] not in str(refusal.value)
