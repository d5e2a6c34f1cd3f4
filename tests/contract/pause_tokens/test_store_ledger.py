"""The ledger on SQLite and PostgreSQL keeps the statements that the ledger in process keeps."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.pause_store.audit import CrossScopeAuditLog
from reconciler.pause_store.claiming import Claim, explain, redeem
from reconciler.pause_store.errors import PauseStoreUnavailableError, TokenRevokedError
from reconciler.pause_store.ledger import SqlTokenLedger
from reconciler.pause_store.reader import Cursor, outstanding, page_statement
from reconciler.pause_store.tables import CONSUMPTION, CROSS_SCOPE_AUDIT, HORIZON, ISSUANCE
from reconciler.pauses import (
    DEPLOYMENT,
    CrossScopeRedemption,
    HumanInteractionCapability,
    InMemoryCheckpoints,
    PauseTokenExpiredError,
    PauseTokenReplayedError,
    ResumeCommand,
    RetirementHorizonError,
    TokenLedgerError,
    TokenTTLError,
    UnissuedTokenError,
    ask_user_registration,
)
from tests.contract.pause_tokens.kit import ANSWER, QUESTION, START, TTL, JwsSigner, Rig, claims
from tests.contract.pause_tokens.store_kit import EXP, MAX, PLACE, claim, clock_at, issue, ledger_on, rows

RACERS = 32


@pytest.mark.statement("S69", "S76")
async def test_of_32_racers_on_one_token_exactly_one_wins(engine: AsyncEngine) -> None:
    await issue(engine)

    won = await asyncio.gather(*(claim(engine) for _ in range(RACERS)))

    assert sorted(won) == [False] * (RACERS - 1) + [True]
    assert await rows(engine, CONSUMPTION) == 1


@pytest.mark.statement("S70")
async def test_a_rolled_back_claim_leaves_the_token_good(engine: AsyncEngine) -> None:
    await issue(engine)
    async with engine.connect() as connection:
        assert await redeem(connection, Claim("a" * 32, claims().scope_hash, "ask_user", START, "first"))

    assert await claim(engine) is True


@pytest.mark.statement("S17", "S76")
async def test_what_was_never_issued_is_not_claimed(engine: AsyncEngine) -> None:
    with pytest.raises(UnissuedTokenError):
        await claim(engine)


@pytest.mark.statement("S17")
async def test_an_issuance_that_vanished_is_no_longer_issued(engine: AsyncEngine) -> None:
    await issue(engine)
    async with engine.begin() as connection:
        await connection.execute(delete(ISSUANCE))

    with pytest.raises(UnissuedTokenError):
        await claim(engine)
    assert await ledger_on(engine).outstanding() == ()


@pytest.mark.statement("S70", "S76")
async def test_a_redemption_that_vanished_meanwhile_is_no_verdict(engine: AsyncEngine) -> None:
    """Between a lost write and its explanation the winner's row may go: that is "try again", not a replay."""
    token = await issue(engine)

    async with engine.connect() as connection:
        obstacle = await explain(connection, Claim(token.jti, token.scope_hash, token.name, START, "mine"))

    assert isinstance(obstacle, PauseStoreUnavailableError)


@pytest.mark.statement("S28", "S76")
@pytest.mark.parametrize("wrong", [{"scope_hash": "0" * 16}, {"name": "approval"}])
async def test_a_claim_that_contradicts_its_issuance_redeems_nothing(
    engine: AsyncEngine, wrong: dict[str, Any]
) -> None:
    await issue(engine)

    with pytest.raises(TokenLedgerError):
        await claim(engine, **wrong)
    assert await claim(engine) is True


@pytest.mark.statement("T6")
async def test_an_answer_token_cannot_be_redeemed_without_its_answer(engine: AsyncEngine) -> None:
    await issue(engine, place=PLACE)

    with pytest.raises(TokenLedgerError):
        await claim(engine)


@pytest.mark.statement("S28")
async def test_an_id_is_issued_once(engine: AsyncEngine) -> None:
    await issue(engine)

    with pytest.raises(TokenLedgerError):
        await issue(engine, exp=EXP + 1)


@pytest.mark.statement("S35")
async def test_expiry_is_exact_on_both_sides_in_the_statement_itself(engine: AsyncEngine) -> None:
    await issue(engine)

    with pytest.raises(PauseTokenExpiredError):
        await claim(engine, at=EXP + 0.001)
    assert await rows(engine, CONSUMPTION) == 0
    assert await claim(engine, at=float(EXP)) is True


@pytest.mark.statement("S11")
async def test_a_spent_token_that_expired_since_is_still_a_replay(engine: AsyncEngine) -> None:
    await issue(engine)
    await claim(engine)

    assert await claim(engine, at=EXP + 1000) is False


async def test_a_revoked_token_is_told_apart_from_a_spent_one(engine: AsyncEngine) -> None:
    ledger = ledger_on(engine)
    await issue(engine)

    assert await ledger.revoke("a" * 32) is True
    assert await ledger.revoke("a" * 32) is False
    assert await ledger.revoke("b" * 32) is False
    assert await ledger.outstanding() == ()
    with pytest.raises(TokenRevokedError):
        await claim(engine)


async def test_revoking_a_key_takes_back_its_live_tokens_only(engine: AsyncEngine) -> None:
    await issue(engine, "a", place=PLACE)
    await issue(engine, "b", place=replace(PLACE, key_id="k2"))
    await issue(engine, "c", place=PLACE, exp=int(START) + 2)

    assert await ledger_on(engine, START + 10).revoke_key("k1") == 1
    assert await ledger_on(engine, START + 10).outstanding() == ("b",)


@pytest.mark.statement("S29", "S75", "S83")
async def test_lifetimes_are_bounded(engine: AsyncEngine) -> None:
    with pytest.raises(TokenTTLError):
        SqlTokenLedger(engine, clock_at(), maximum_ttl_seconds=0)
    for exp in (int(START) + MAX + 1, int(START)):
        with pytest.raises(TokenTTLError):
            await issue(engine, exp=exp)
    assert await rows(engine, ISSUANCE) == 0


@pytest.mark.statement("S77")
def test_the_ledger_is_durable_and_shared() -> None:
    assert (SqlTokenLedger.durable, SqlTokenLedger.deployment_wide) == (True, True)


@pytest.mark.statement("S79")
async def test_outstanding_is_issued_unredeemed_and_unexpired_in_order(engine: AsyncEngine) -> None:
    for jti, exp in (("c", EXP), ("a", EXP), ("b", EXP), ("d", EXP - 300)):
        await issue(engine, jti, exp=exp)
    await claim(engine, "b")
    ledger = ledger_on(engine)

    assert await ledger.outstanding() == ("a", "c", "d")
    assert await ledger.outstanding(EXP - 300) == ("a", "c", "d")
    assert await ledger.outstanding(EXP - 299.999) == ("a", "c")
    assert await ledger.outstanding(EXP + 1) == ()


@pytest.mark.statement("S79")
async def test_outstanding_is_paged_without_losing_or_doubling_any(engine: AsyncEngine) -> None:
    issued = [f"{number:02}" for number in range(11)]
    for number, jti in enumerate(issued):
        await issue(engine, jti, exp=EXP + number // 4)
    for jti in issued[:4]:
        await claim(engine, jti)

    pages: list[tuple[str, ...]] = []
    page = await outstanding(engine, now=START, rows=4)
    pages.append(page.jtis)
    while page.after is not None:
        await issue(engine, f"late-{len(pages)}", exp=EXP - 1)
        page = await outstanding(engine, now=START, after=page.after, rows=4)
        pages.append(page.jtis)

    assert pages == [(), tuple(issued[4:8]), tuple(issued[8:])]


@pytest.mark.parametrize("after", [None, Cursor(EXP, "a")])
async def test_a_page_of_the_outstanding_is_a_range_of_an_index(engine: AsyncEngine, after: Cursor | None) -> None:
    statement = page_statement(now=START, after=after, rows=200)
    prefix = "EXPLAIN QUERY PLAN" if engine.dialect.name == "sqlite" else "EXPLAIN"
    compiled = statement.compile(engine.sync_engine, compile_kwargs={"literal_binds": True})

    async with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            await connection.exec_driver_sql("SET enable_seqscan = off")
            await connection.exec_driver_sql("SET enable_bitmapscan = off")
        plan = " ".join(str(row) for row in await connection.exec_driver_sql(f"{prefix} {compiled}"))

    assert "ix_answer_token_issuance_expiry" in plan
    assert "SCAN answer_token" not in plan
    assert "Seq Scan" not in plan


@pytest.mark.statement("S27", "S80")
@pytest.mark.parametrize("at", [START, START - 1, float("nan"), float("inf")])
async def test_a_horizon_lies_in_the_future(engine: AsyncEngine, at: float) -> None:
    with pytest.raises(RetirementHorizonError):
        await ledger_on(engine).record_retirement_horizon(at, "over")
    assert await rows(engine, HORIZON) == 0


@pytest.mark.statement("S27", "S80", "S81")
async def test_of_16_horizons_one_is_recorded_and_stands(engine: AsyncEngine) -> None:
    ledger = ledger_on(engine)

    outcomes = await asyncio.gather(
        *(ledger.record_retirement_horizon(START + 10 + n, str(n)) for n in range(16)), return_exceptions=True
    )

    (standing,) = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert [type(outcome) for outcome in outcomes].count(RetirementHorizonError) == 15
    with pytest.raises(RetirementHorizonError, match=f"{standing.at}"):
        await ledger.record_retirement_horizon(standing.at, standing.reason)
    assert await ledger.drain_deadline() == standing.at + MAX
    assert (await ledger.drain_proof()).horizon == standing


@pytest.mark.statement("S82")
async def test_the_retired_format_is_over_only_when_that_is_proven(engine: AsyncEngine) -> None:
    ledger = ledger_on(engine)
    await issue(engine, "pinned", legacy_pinned=True)
    await issue(engine, "plain")

    assert (await ledger.drain_proof()).drained is False
    await ledger.record_retirement_horizon(START + 10, "over")
    at_horizon = await ledger.drain_proof(START + 10)
    assert (at_horizon.drained, at_horizon.outstanding, at_horizon.scope) == (False, ("pinned",), DEPLOYMENT)
    assert (await ledger.drain_proof(EXP + 0.001)).drained is True
    await claim(engine, "pinned")
    assert (await ledger.drain_proof(START + 10)).drained is True


@pytest.mark.statement("S83")
async def test_from_the_horizon_on_the_retired_format_is_not_issued(engine: AsyncEngine) -> None:
    await ledger_on(engine).record_retirement_horizon(START + 10, "over")

    await issue(engine, "a", issued_at=START + 9.9, legacy_pinned=True)
    await issue(engine, "b", issued_at=START + 10)
    with pytest.raises(RetirementHorizonError):
        await issue(engine, "c", issued_at=START + 10, legacy_pinned=True)
    assert await ledger_on(engine).outstanding() == ("a", "b")


@pytest.mark.statement("T7")
async def test_an_issuance_says_where_it_belongs_and_to_whom_it_was_given(engine: AsyncEngine) -> None:
    await issue(engine, place=PLACE)

    async with engine.connect() as connection:
        row = (await connection.execute(ISSUANCE.select())).one()
    assert (row.session_id, row.run_id, row.call_id) == ("s-1", "r-1", "call-1")
    assert (row.namespace, row.attention_id, row.recipient_ref, row.channel, row.key_id) == (
        "prod",
        "a-1",
        "alice",
        "mail",
        "k1",
    )
    assert (row.issued_at, row.expires_at) == (START, float(EXP))


@pytest.mark.statement("S92")
async def test_crossings_of_scopes_are_kept(engine: AsyncEngine) -> None:
    await CrossScopeAuditLog(engine).record(CrossScopeRedemption("n", "i-1", "j", "mint", "presented", START))

    assert await rows(engine, CROSS_SCOPE_AUDIT) == 1


def capability_on(engine: AsyncEngine, signer: JwsSigner, checkpoints: Any) -> HumanInteractionCapability:
    clock = clock_at()
    return HumanInteractionCapability.compile(
        (ask_user_registration(),),
        signer=signer,
        ttl=TTL,
        ledger=SqlTokenLedger(engine, clock, maximum_ttl_seconds=MAX),
        checkpoints=checkpoints,
        clock=lambda: clock.now().timestamp(),
    )


@pytest.mark.statement("S11", "S97")
async def test_a_spent_token_stays_spent_after_a_restart(engine: AsyncEngine) -> None:
    signer, checkpoints = JwsSigner(), InMemoryCheckpoints()
    capability = capability_on(engine, signer, checkpoints)
    binding = Rig().binding(checkpoint_id="cp-1")
    event = await capability.pause("ask_user", QUESTION, binding=binding, tool_call_id="call-1")
    command = ResumeCommand(event.pause.envelope, ANSWER, binding.scope, "s-1", "r-1", "call-1")
    await capability.resume(command)

    restarted = capability_on(engine, signer, checkpoints)

    with pytest.raises(PauseTokenReplayedError):
        await restarted.resume(command)
