"""The claim and the look stay quick however long the outbox is: both databases use the partial index."""

from datetime import timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.digests import carried_statement
from tests.support.delivering import START, Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of
from worker.delivery.claims import claim_statement, look_statement

ROWS = 100_000


async def test_claim_and_look_use_the_index_with_many_rows_waiting(engine: AsyncEngine) -> None:
    house = Delivering(engine, [destination_of(ScriptedChannel("ops"))])
    await house.see("a")
    await _fill(engine)
    claim = claim_statement("ops", now=START + timedelta(days=2), until=START, lease_id="0" * 32, limit=50)

    for statement in (claim, look_statement("ops")):
        plan = await _plan(engine, str(statement.compile(engine.sync_engine, compile_kwargs={"literal_binds": True})))
        assert "ix_deliveries_due" in plan
        assert "Seq Scan on deliveries" not in plan
        assert "SCAN deliveries" not in plan


async def test_what_a_lead_carries_is_found_by_its_index_with_many_rows_waiting(engine: AsyncEngine) -> None:
    house = Delivering(engine, [destination_of(ScriptedChannel("ops"))])
    await house.see("a")
    await _fill(engine)

    for leads in ([1], list(range(1, 500))):
        statement = carried_statement(leads).compile(engine.sync_engine, compile_kwargs={"literal_binds": True})
        plan = await _plan(engine, str(statement))
        assert "ix_deliveries_carrier" in plan


async def _fill(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)"
        when = "'2026-03-01T12:00:00.000000+00:00'"
        await connection.execute(
            text(
                f"{numbers} INSERT INTO deliveries (notification_id, destination, channel, recipient, purpose, "
                "message_key, route, status, reason, next_attempt_at, created_at) "
                "SELECT (SELECT min(id) FROM notifications), CASE i % 3 WHEN 0 THEN 'ops' ELSE 'mail' END, 'scripted', "
                f"'person ' || i, 'open', 'k', 'r', CASE i % 10 WHEN 0 THEN 'sent' ELSE 'pending' END, 'routed', "
                f"{when}, {when} FROM n"
            ),
            {"rows": ROWS},
        )
    async with engine.connect() as connection:
        connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.exec_driver_sql("ANALYZE deliveries")


async def _plan(engine: AsyncEngine, sql: str) -> str:
    explain = "EXPLAIN QUERY PLAN " if engine.dialect.name == "sqlite" else "EXPLAIN "
    async with engine.connect() as connection:
        rows = await connection.exec_driver_sql(explain + sql)
        return "\n".join(str(row[-1]) for row in rows)
