"""The async engine, set up so that SQLite and PostgreSQL keep the same promises.

SQLite: WAL, `synchronous=FULL` (a committed row survives a power cut), foreign keys, a busy timeout, and
`BEGIN IMMEDIATE` for every transaction that may write, so that two writers queue instead of failing half-way;
a connection with the execution option `write=False` begins without taking the write lock. Both: a connection whose
COMMIT failed goes back to the pool without its transaction.
"""

from datetime import timedelta
from pathlib import Path
from sqlite3 import Connection as SqliteConnection
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, NullPool, PoolResetState

from config.errors import SettingsError

# How long a writer waits for another one's transaction before it is told that the database is locked.
BUSY_TIMEOUT_SECONDS = 10

READ_ONLY = {"write": False}

# How long a foreign database may take to answer one statement.
READ_WITHIN = timedelta(seconds=10)

# Where the schema's revision stands. A name of our own: the database of another Alembic project is told from ours.
VERSION_TABLE = "handbell_revision"

# How long a PostgreSQL server has to answer a new connection.
CONNECT_TIMEOUT_SECONDS = 10

# https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION; asyncpg knows the same words as `ssl`.
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")

_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
}


def database_url(text: str, *, relative_to: Path) -> URL:
    """Turn a configured URL into one with our driver; relative SQLite paths count from `relative_to`.

    Raises SettingsError, without repeating the URL (it may hold a password).
    """
    try:
        url = make_url(text)
    except ArgumentError:
        raise SettingsError("[database] url is not a URL: use sqlite:///FILE or postgresql://USER@HOST/NAME") from None
    driver = _DRIVERS.get(url.get_backend_name())
    if driver is None:
        name = url.get_backend_name()
        raise SettingsError(f"[database] url names {name!r}: only sqlite:/// and postgresql:// can be used")
    url = url.set(drivername=driver)
    if driver.startswith("sqlite"):
        if not url.database or url.database == ":memory:":
            raise SettingsError(
                "[database] url names no file: notifications must survive a restart; use sqlite:///FILE"
            )
        return url.set(database=str((relative_to / url.database).resolve()))
    return _with_drivers_options(url)


def create_engine(url: URL, *, pool_size: int = 5) -> AsyncEngine:
    """Make the engine for `url` (of `database_url`); connects on first use, the caller disposes of it."""
    if url.get_backend_name() == "sqlite":
        engine = create_async_engine(url, connect_args={"timeout": BUSY_TIMEOUT_SECONDS, "isolation_level": None})
        event.listen(engine.sync_engine, "connect", _prepare_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
    else:
        engine = create_async_engine(
            url,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_pre_ping=True,
            connect_args={"timeout": CONNECT_TIMEOUT_SECONDS},
        )
    event.listen(engine.sync_engine, "reset", _end_transaction)
    return engine


def create_reader(url: URL, *, within: timedelta = READ_WITHIN) -> AsyncEngine:
    """Make an engine that can only read, for a database that is somebody else's; creates no file and changes none.

    A statement that takes longer than `within` fails (PostgreSQL; SQLite: the wait for a lock).
    """
    milliseconds = str(int(within.total_seconds() * 1000))
    if url.get_backend_name() == "sqlite":
        file = f"file:{quote(url.database or '')}"
        return create_async_engine(
            url.set(database=file, query={"mode": "ro", "uri": "true"}),
            poolclass=NullPool,  # a kept connection would go on reading a file that was moved away or replaced
            connect_args={"timeout": within.total_seconds(), "isolation_level": None},
        )
    return create_async_engine(
        url,
        pool_size=2,
        pool_pre_ping=True,
        connect_args={
            "timeout": CONNECT_TIMEOUT_SECONDS,
            "server_settings": {"default_transaction_read_only": "on", "statement_timeout": milliseconds},
        },
    )


def _with_drivers_options(url: URL) -> URL:
    """Turn the options of a libpq URL into asyncpg's; one that it has no word for is an error here."""
    for option in url.query:
        if option not in ("host", "port", "sslmode"):
            raise SettingsError(f"[database] url has the option {option!r}: only host, port and sslmode can be used")
    mode = url.query.get("sslmode")
    if mode is None:
        return url
    if mode not in _SSL_MODES:
        raise SettingsError(f"[database] url has an unknown sslmode: it is one of {', '.join(_SSL_MODES)}")
    return url.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})


def _prepare_sqlite(connection: DBAPIConnection | SqliteConnection, _entry: ConnectionPoolEntry | None) -> None:
    cursor = connection.cursor()
    for pragma in (f"busy_timeout={BUSY_TIMEOUT_SECONDS * 1000}", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    # The journal's mode is kept in the file: another program's database must stay as it is.
    cursor.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (VERSION_TABLE,))
    if cursor.fetchone() is not None:
        cursor.execute("PRAGMA journal_mode=WAL")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    options: dict[str, Any] = dict(connection.get_execution_options())
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("write", True) else "BEGIN")


def _end_transaction(connection: DBAPIConnection, _entry: ConnectionPoolEntry | None, state: PoolResetState) -> None:
    """Roll back what a failed COMMIT left open, before the pool hands the connection, and its locks, to somebody else.

    SQLite keeps the transaction open (a full disk, a deferred constraint); SQLAlchemy counts it as over and resets
    nothing. Without a transaction neither driver asks its database anything. Where this raises the pool throws the
    connection away.
    """
    if state.transaction_was_reset and state.asyncio_safe:
        connection.rollback()
