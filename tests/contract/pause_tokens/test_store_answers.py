"""One request takes one answer, together with its token or not at all."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.pause_store.answers import AnswerState, AnswerStore
from reconciler.pause_store.errors import AlreadyAnsweredError, TokenRevokedError
from reconciler.pause_store.tables import ANSWERS, CONSUMPTION
from reconciler.pauses import (
    PauseTokenExpiredError,
    PauseTokenReplayedError,
    TokenLedgerError,
    UnissuedTokenError,
)
from tests.contract.pause_tokens.kit import START
from tests.contract.pause_tokens.store_kit import EXP, PLACE, answer, issue, ledger_on, rows

RACERS = 32


@pytest.mark.statement("T5")
async def test_an_answer_and_its_redemption_are_one_transaction(engine: AsyncEngine) -> None:
    await issue(engine, place=PLACE)

    acceptance = await AnswerStore(engine).accept(answer())

    assert acceptance.is_repeated is False
    assert acceptance.stored.state is AnswerState.ACCEPTED
    assert acceptance.stored.answer_body == b"sealed"
    assert (await rows(engine, ANSWERS), await rows(engine, CONSUMPTION)) == (1, 1)


@pytest.mark.statement("T6")
async def test_of_eight_tokens_for_one_request_under_32_racers_one_is_redeemed(engine: AsyncEngine) -> None:
    tokens = [f"{number}" * 32 for number in range(8)]
    for token in tokens:
        await issue(engine, token, place=PLACE)
    store = AnswerStore(engine)

    outcomes = await asyncio.gather(
        *(
            store.accept(answer(tokens[n % 8], principal=f"p{n}", request_digest=f"{n:064}"))
            for n in range(RACERS)
        ),
        return_exceptions=True,
    )  # fmt: skip

    assert [type(outcome) for outcome in outcomes].count(AlreadyAnsweredError) == RACERS - 1
    assert (await rows(engine, ANSWERS), await rows(engine, CONSUMPTION)) == (1, 1)
    assert len(await ledger_on(engine).outstanding()) == 7


@pytest.mark.statement("T6")
async def test_each_request_takes_its_own_answer(engine: AsyncEngine) -> None:
    other = replace(PLACE, namespace="staging")
    await issue(engine, "a" * 32, place=PLACE)
    await issue(engine, "b" * 32, place=other)
    store = AnswerStore(engine)

    await store.accept(answer())
    await store.accept(answer("b" * 32, namespace="staging"))

    assert await rows(engine, ANSWERS) == 2


async def test_the_same_answer_again_is_known_again(engine: AsyncEngine) -> None:
    await issue(engine, place=PLACE)
    store = AnswerStore(engine)
    first = await store.accept(answer())

    again = await store.accept(answer(now=EXP + 1000.0))

    assert again.is_repeated is True
    assert again.stored == first.stored


@pytest.mark.parametrize(
    "other",
    [{"principal": "mallory"}, {"request_digest": "e" * 64}, {"jti": "b" * 32}],
    ids=lambda change: next(iter(change)),
)
async def test_another_answer_is_refused_and_the_first_stays(engine: AsyncEngine, other: dict[str, Any]) -> None:
    await issue(engine, "a" * 32, place=PLACE)
    await issue(engine, "b" * 32, place=PLACE)
    store = AnswerStore(engine)
    first = await store.accept(answer())

    with pytest.raises(AlreadyAnsweredError):
        await store.accept(replace(answer(), **other))
    assert await store.find("prod", "a-1") == first.stored


@pytest.mark.statement("S35")
async def test_an_answer_taken_in_time_may_commit_just_after_expiry(engine: AsyncEngine) -> None:
    """Expiry is judged by the one reading that the checks were made with, however late the commit is."""
    await issue(engine, place=PLACE)
    store = AnswerStore(engine)

    with pytest.raises(PauseTokenExpiredError):
        await store.accept(answer(now=EXP + 0.001))
    assert await store.find("prod", "a-1") is None
    acceptance = await store.accept(answer(now=float(EXP)))
    assert acceptance.stored.accepted_at == float(EXP)


async def refused(engine: AsyncEngine, error: type[Exception], **changes: Any) -> None:
    store = AnswerStore(engine)
    with pytest.raises(error) as caught:
        await store.accept(replace(answer(), **changes))
    assert type(caught.value) is error
    assert await store.find("prod", "a-1") is None


@pytest.mark.statement("S17", "S28")
async def test_what_stands_in_a_tokens_way_leaves_no_answer(engine: AsyncEngine) -> None:
    await issue(engine, place=PLACE)
    await issue(engine, "c" * 32, place=replace(PLACE, attention_id="a-2"))
    await issue(engine, "d" * 32)

    await refused(engine, UnissuedTokenError, jti="b" * 32)
    await refused(engine, TokenLedgerError, scope_hash="0" * 16)
    await refused(engine, TokenLedgerError, name="approval")
    await refused(engine, TokenLedgerError, jti="c" * 32)
    await refused(engine, TokenLedgerError, jti="d" * 32)
    await ledger_on(engine).revoke("a" * 32)
    await refused(engine, TokenRevokedError)


@pytest.mark.statement("S11")
async def test_a_token_that_answered_one_request_does_not_answer_another(engine: AsyncEngine) -> None:
    await issue(engine, place=PLACE)
    store = AnswerStore(engine)
    await store.accept(answer())

    with pytest.raises(TokenLedgerError):
        await store.accept(answer(attention_id="a-2"))
    assert await store.find("prod", "a-2") is None


@pytest.mark.statement("S11")
async def test_a_redemption_without_an_answer_is_a_replay(engine: AsyncEngine) -> None:
    await issue(engine, place=PLACE)
    async with engine.begin() as connection:
        await connection.execute(
            CONSUMPTION.insert().values(
                jti="a" * 32, scope_hash="s", name="ask_user", consumed_at=START, claim_id="elsewhere"
            )
        )

    await refused(engine, PauseTokenReplayedError)
