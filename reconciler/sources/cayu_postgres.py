"""What is particular to a Cayu store on PostgreSQL: two openings, and a role that may lock rows.

Scans go through an opening that is read-only. States go through one that only validates: Cayu 0.15.0 reads its
closure receipts with SELECT ... FOR SHARE, which fails in a read-only transaction, and for a role without UPDATE on
those tables (https://www.postgresql.org/docs/17/sql-select.html, the locking clause). Every settled request would
stay `unavailable` then. Nothing is written by either.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from reconciler.errors import SourceRefused
from reconciler.sources.cayu_target import StoreFault, Target

if TYPE_CHECKING:
    import psycopg
    from cayu.storage import PostgresSessionStore
    from psycopg_pool import AsyncConnectionPool

_CONNECT_TIMEOUT_SECONDS = 5

# How long a query waits for a connection; the pool's own default is half a minute.
_POOL_TIMEOUT_SECONDS = 5.0

_MAY_LOCK = (
    "SELECT bool_and(has_any_column_privilege(name, 'UPDATE'))"
    " FROM unnest(ARRAY['cayu_session_operations', 'cayu_events']) AS name"
)


def scanned_store(dsn: str) -> "PostgresSessionStore":
    """Make the read-only opening; it owns its connections, as Cayu wants it, and runs no DDL."""
    from cayu.storage import PostgresSessionStore
    from cayu.storage.migrations import SchemaMode

    return PostgresSessionStore(dsn, min_size=1, max_size=2, schema_mode=SchemaMode.VALIDATE, read_only=True)


def observed_store(dsn: str) -> tuple["PostgresSessionStore", "AsyncConnectionPool[Any]"]:
    """Make the validating opening, which runs no DDL either, and its pool, which the caller closes."""
    from cayu.storage import PostgresSessionStore
    from cayu.storage.migrations import SchemaMode
    from psycopg_pool import AsyncConnectionPool

    pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
        dsn, min_size=1, max_size=4, timeout=_POOL_TIMEOUT_SECONDS, open=False, configure=_configure
    )
    return PostgresSessionStore(pool=pool, schema_mode=SchemaMode.VALIDATE), pool


async def _configure(connection: Any) -> None:
    # As Cayu's own pools: behind a transaction-pooling proxy prepared statements collide.
    connection.prepare_threshold = None


async def probe_server(dsn: str) -> None:
    """Try one connection: the pool would retry a wrong password until its time is up, and not say why."""
    async with _connection(dsn):
        pass


async def check_privileges(target: Target) -> None:
    """Raise SourceRefused where the role could see requests but never what became of them."""
    if target.dsn is None:
        return
    async with _connection(target.dsn) as connection:
        cursor = await connection.execute(_MAY_LOCK)
        row = await cursor.fetchone()
    if row is None or row[0] is not True:
        raise SourceRefused(
            StoreFault.CREDENTIALS_REFUSED,
            f"the role at {target.name} may not lock Cayu's receipts, so no request would ever be seen settled:"
            " GRANT UPDATE ON cayu_session_operations, cayu_events to it (nothing is written)",
        )


@asynccontextmanager
async def _connection(dsn: str) -> AsyncIterator["psycopg.AsyncConnection[tuple[object, ...]]"]:
    import psycopg

    try:
        connection = await psycopg.AsyncConnection.connect(dsn, connect_timeout=_CONNECT_TIMEOUT_SECONDS)
    except psycopg.ProgrammingError:
        raise SourceRefused(StoreFault.TARGET_UNREADABLE, "store is not a PostgreSQL URL that can be read") from None
    async with connection:
        yield connection
