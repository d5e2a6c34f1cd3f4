"""The statements that SQLite and PostgreSQL spell alike but SQLAlchemy keeps in two dialects."""

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection


def insert_ignoring(connection: AsyncConnection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return INSERT .. ON CONFLICT DO NOTHING for the connection's dialect."""
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing()
    return postgresql.insert(table).on_conflict_do_nothing()
