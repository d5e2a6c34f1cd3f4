"""Bounds how long a database of the web listener may keep a request waiting.

A sender of the handoff gives up after 10 s; told 503 before that, it knows that it must send again.
"""

from datetime import timedelta

from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import ConnectionPoolEntry

LONGEST_WAIT = timedelta(seconds=4)


def bound_waits(engine: AsyncEngine, longest: timedelta = LONGEST_WAIT) -> AsyncEngine:
    """Make every statement of `engine` fail after `longest` instead of waiting on; returns the engine.

    For an engine of the web listener's own, before its first connection: a sweep may wait longer than this. SQLite:
    the wait for the write lock. PostgreSQL: every statement.
    """
    milliseconds = int(longest.total_seconds() * 1000)
    if engine.dialect.name == "sqlite":
        statements = [f"PRAGMA busy_timeout={milliseconds}"]
    else:
        statements = [f"SET statement_timeout={milliseconds}", f"SET lock_timeout={milliseconds}"]

    def prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        cursor.close()
        connection.commit()

    event.listen(engine.sync_engine, "connect", prepare)
    return engine
