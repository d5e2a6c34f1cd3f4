"""A COMMIT that fails costs its own transaction and nobody else's."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.database import READ_ONLY
from reconciler.tables import HISTORY, LEASES
from tests.support.paging_source import BEGINNING

ORPHAN = {
    "notification_id": 404,
    "to_state": "active",
    "reason": "current_action",
    "door": "sweep",
    "observed_at": BEGINNING,
    "recorded_at": BEGINNING,
}


def lease(name: str) -> Any:
    return insert(LEASES).values(name=name, lease_id="x", leased_until=BEGINNING)


async def names(connection: AsyncConnection) -> list[str]:
    return list(await connection.scalars(select(LEASES.c.name)))


async def test_failed_commit_leaves_no_write_lock_in_the_pool(sqlite_engine: AsyncEngine) -> None:
    async with sqlite_engine.connect() as connection:
        await connection.execute(text("PRAGMA defer_foreign_keys=ON"))  # so that only the COMMIT refuses
        await connection.execute(lease("lost"))
        await connection.execute(insert(HISTORY).values(ORPHAN))
        with pytest.raises(IntegrityError):
            await connection.commit()

    async with asyncio.timeout(5), sqlite_engine.connect() as one, sqlite_engine.connect() as other:
        other = await other.execution_options(**READ_ONLY)
        await one.execute(lease("kept"))
        assert await names(other) == []
        await one.commit()


async def test_commit_that_never_reached_the_database_is_rolled_back(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(_connection: Any) -> None:
        raise OperationalError("COMMIT", None, ConnectionError("lost"))

    async with engine.connect() as connection:
        await connection.execute(lease("same"))
        with monkeypatch.context() as patched:
            patched.setattr(engine.sync_engine.dialect, "do_commit", lose)
            with pytest.raises(OperationalError):
                await connection.commit()

    async with asyncio.timeout(5), engine.begin() as connection:
        await connection.execute(lease("same"))  # the lost one's row would be in the way, or its lock

    async with engine.connect() as connection:
        assert await names(connection) == ["same"]
