"""Opens a Cayu store to look at it, never to write: no agents, no sinks, no handoff, no schema change.

Cayu is imported here, on first use: Handbell runs without it. Everything that can be wrong with a store becomes
one SourceError of a fixed reason; Cayu's and the drivers' own texts (they may hold addresses) go no further.
"""

import asyncio
import sqlite3
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.errors import SourceError, SourceMissing, SourceRefused, SourceUnavailable
from reconciler.sources.cayu_postgres import observed_store, probe_server, scanned_store
from reconciler.sources.cayu_target import NOT_INSTALLED, StoreFault, Target

if TYPE_CHECKING:
    from cayu import CayuApp
    from cayu.storage import PostgresSessionStore, SQLiteSessionStore
    from psycopg_pool import AsyncConnectionPool

    # SessionStore itself declares no close().
    AnyStore = SQLiteSessionStore | PostgresSessionStore

# How long a store may take to open; the import of cayu (seconds on a cold machine) is part of it.
OPEN_TIMEOUT = timedelta(seconds=30)

# What tells that the file at a path is another one than it was: device and inode.
FileMark = tuple[int, int]


@dataclass(frozen=True, slots=True)
class OpenStore:
    """An open read-only store for scans, and the application that observes it.

    `identity` is the store's own, read once: it cannot change while the database stays the same. `mark` is the
    SQLite file's at the time of opening, None for PostgreSQL, where `pool` holds the application's connections.
    """

    store: "AnyStore"
    app: "CayuApp"
    identity: str
    mark: FileMark | None
    pool: "AsyncConnectionPool[Any] | None" = None

    async def close(self) -> None:
        """Close the store's connections; the application owns nothing."""
        await _close(self.store, self.pool)


async def open_store(target: Target) -> OpenStore:
    """Open `target` and read its identity; creates no file and no table.

    Raises SourceUnavailable (it may appear or answer later) or SourceRefused (a person must act), one line each.
    """
    mark = file_mark(target)
    try:
        async with asyncio.timeout(OPEN_TIMEOUT.total_seconds()):
            if target.dsn is not None:
                await probe_server(target.dsn)
            store, app, pool = await asyncio.to_thread(_construct, target)
            try:
                return OpenStore(store, app, await store.read_store_identity(), mark, pool)
            except BaseException:
                await _close(store, pool)
                raise
    except SourceError:
        raise
    except ImportError:
        raise SourceRefused(StoreFault.CAYU_NOT_INSTALLED, NOT_INSTALLED) from None
    except store_errors() as error:
        raise _fault(error, target) from None


def file_mark(target: Target) -> FileMark | None:
    """Return what tells the SQLite file from another under its name; raises SourceError where there is no file."""
    if target.path is None:
        return None
    try:
        status = target.path.stat()
    except OSError:
        raise SourceMissing(
            StoreFault.STORE_MISSING,
            f"there is no file {target.path}: name the agent's session store (nothing was created)",
        ) from None
    if not target.path.is_file():
        raise SourceRefused(StoreFault.NOT_A_CAYU_STORE, f"{target.path} is not a file: name the agent's session store")
    return status.st_dev, status.st_ino


def store_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions by which a store says that it failed, psycopg's where it is installed."""
    # RuntimeError: Cayu's own (schema, closed store, size); ValueError: a row that it could not read.
    errors: tuple[type[Exception], ...] = (sqlite3.Error, OSError, TimeoutError, RuntimeError, ValueError, LookupError)
    try:
        import psycopg
    except ImportError:
        return errors
    return (*errors, psycopg.Error)


def _construct(target: Target) -> tuple["AnyStore", "CayuApp", "AsyncConnectionPool[Any] | None"]:
    from cayu import CayuApp
    from cayu.human_attention_handoff import HumanAttentionHandoff

    store: AnyStore
    observed: AnyStore
    pool = None
    if target.path is not None:
        store = observed = _sqlite(target.path)
    else:
        store = scanned_store(target.dsn or "")
        observed, pool = observed_store(target.dsn or "")
    # Without an explicit handoff the application would take the environment's and answer for this process.
    app = CayuApp(session_store=observed, enable_logging=False, human_attention_handoff=HumanAttentionHandoff(None))
    return store, app, pool


def _sqlite(path: Path) -> "SQLiteSessionStore":
    from cayu.storage import SQLiteSessionStore
    from cayu.storage.migrations import SchemaMode

    return SQLiteSessionStore(path, schema_mode=SchemaMode.VALIDATE, read_only=True)


async def _close(store: "AnyStore", pool: "AsyncConnectionPool[Any] | None") -> None:
    await store.close()
    if pool is not None:
        await pool.close()


def _fault(error: Exception, target: Target) -> SourceError:
    """Say in one line, by the exception's class, what is wrong with `target`."""
    from cayu.storage import migrations
    from cayu.storage.targets import PostgresRequiredError

    if isinstance(error, migrations.SchemaUninitialized) or _is_other_file(error):
        return SourceRefused(
            StoreFault.NOT_A_CAYU_STORE, f"{target.name} is not a Cayu store: name the agent's session store"
        )
    if isinstance(error, migrations.SchemaError):
        return SourceRefused(
            StoreFault.WRONG_SCHEMA_VERSION,
            f"{target.name} has another schema than the installed Cayu reads: run `cayu storage migrate` there, or"
            " install the agent's version of cayu here",
        )
    if isinstance(error, PostgresRequiredError):
        return SourceRefused(
            StoreFault.TARGET_UNREADABLE, "CAYU_REQUIRE_POSTGRES is set: no SQLite store may be opened"
        )
    if isinstance(error, NotImplementedError):
        return SourceUnavailable(
            StoreFault.STORE_WITHOUT_IDENTITY, f"{target.name} has no store identity: run `cayu storage migrate` there"
        )
    if isinstance(error, ValueError) and "alias" in str(error):
        return SourceRefused(
            StoreFault.ALIAS_KEYS_REQUIRED,
            f"{target.name} cannot be opened without the agent's public-alias keys: use a source of type cayu-http",
        )
    return _unreachable(error, target)


def _unreachable(error: Exception, target: Target) -> SourceError:
    # libpq gives no code for a refused connection; its English text is all there is to tell these two.
    text = str(error) if target.dsn is not None else ""
    if "authentication failed" in text or "no password supplied" in text or "does not exist" in text:
        return SourceRefused(
            StoreFault.CREDENTIALS_REFUSED, f"{target.name} refuses the user, the password or the database's name"
        )
    return SourceUnavailable(StoreFault.STORE_UNREACHABLE, f"{target.name} does not answer as a store now")


def _is_other_file(error: Exception) -> bool:
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    return error.sqlite_errorname == "SQLITE_NOTADB" or "no such table" in str(error)
