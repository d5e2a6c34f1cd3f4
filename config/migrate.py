"""Brings the database to the schema that this code needs, or says that it is not there.

Several processes may migrate at once: on PostgreSQL an advisory lock, on SQLite the write lock of
`BEGIN IMMEDIATE` lets one of them do it, and the others find nothing left to do. Everything is one
transaction: a migration that fails leaves the database as it was.
"""

from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncEngine

from config.database import READ_ONLY, VERSION_TABLE
from config.database_errors import database_place, said_in_one_line
from config.errors import SchemaError

_ADVISORY_LOCK = int.from_bytes(b"handbell")  # fits a signed bigint


async def migrate(engine: AsyncEngine) -> tuple[str, ...]:
    """Bring the schema to head and return the revisions applied, oldest first; safe to call twice or at once.

    Raises SchemaError where the database is another program's or newer than this code, and what
    `said_in_one_line` raises where it cannot be used at all.
    """
    async with said_in_one_line(engine.url), engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        applied = await connection.run_sync(_upgrade, database_place(engine.url))
    # A new SQLite file is made WAL by the next connection, now that it is known to be ours.
    await engine.dispose()
    return applied


async def require_current(engine: AsyncEngine) -> None:
    """Return where the database is at this code's revision; writes nothing.

    Raises SchemaError otherwise, and what `said_in_one_line` raises where it cannot be used at all.
    """
    url = engine.url
    _require_file(url)
    async with said_in_one_line(url), engine.execution_options(**READ_ONLY).connect() as connection:
        pending = await connection.run_sync(_pending, _scripts(), database_place(url))
    if pending:
        raise SchemaError(f"{database_place(url)} is not migrated ({pending[0]} is missing): run `handbell migrate`")


def _require_file(url: URL) -> None:
    # SQLite would make an empty file of what was only asked about.
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise SchemaError(f"{database_place(url)} does not exist: run `handbell migrate`")


def _alembic() -> Config:
    config = Config()
    # Alembic's configuration interpolates %.
    config.set_main_option("script_location", str(files("config") / "migrations").replace("%", "%%"))
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_alembic())


def _upgrade(connection: Connection, place: str) -> tuple[str, ...]:
    config = _alembic()
    pending = _pending(connection, ScriptDirectory.from_config(config), place)
    if pending:
        config.attributes["connection"] = connection
        config.attributes["version_table"] = VERSION_TABLE
        command.upgrade(config, "head")
    return pending


def _pending(connection: Connection, scripts: ScriptDirectory, place: str) -> tuple[str, ...]:
    """Return the revisions that the database lacks, oldest first."""
    revision = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()
    known = [script.revision for script in scripts.walk_revisions()][::-1]
    if revision is None:
        _require_empty(connection, place)
        return tuple(known)
    if revision not in known:
        raise SchemaError(
            f"{place} is at revision {revision}, which this version does not know: it was migrated by a newer one; "
            "upgrade Handbell here too"
        )
    return tuple(known[known.index(revision) + 1 :])


def _require_empty(connection: Connection, place: str) -> None:
    tables = inspect(connection).get_table_names()
    if tables:
        raise SchemaError(
            f"{place} holds other tables ({', '.join(sorted(tables)[:3])}) and none of Handbell's: "
            "give Handbell a database of its own"
        )
