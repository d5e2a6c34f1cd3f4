"""Reads an issuance ledger that belongs to a runtime: Handbell's own tables, or two of the documented shape.

Every question is one statement, so it sees one moment of both tables. Nothing is ever written, and no file is made.
"""

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Double,
    FromClause,
    Row,
    Select,
    String,
    column,
    extract,
    func,
    inspect,
    literal,
    null,
    select,
    table,
    true,
    tuple_,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.types import TypeEngine

from config.database import create_reader
from config.database_errors import database_place
from reconciler.errors import SourceMissing, SourceRefused, SourceUnavailable
from reconciler.pause_store.tables import CONSUMPTION, ISSUANCE
from reconciler.sources.protocol import Incomplete

# https://www.postgresql.org/docs/current/errcodes-appendix.html: authorization, an unknown database, a missing right.
_REFUSED_SQLSTATES = ("28", "3D", "42501")
_ISSUED_COLUMNS = frozenset({"jti", "scope_hash", "name", "issued_at", "expires_at"})
_TIMES = frozenset({"issued_at", "expires_at"})
_CONSUMED_COLUMNS = frozenset({"jti", "scope_hash", "name"})


@dataclass(frozen=True, slots=True)
class Position:
    """Behind which issuance the next page begins; newest first."""

    issued_at: float
    jti: str


@dataclass(frozen=True, slots=True)
class _Shape:
    issued: FromClause
    consumed: FromClause
    is_ours: bool

    @property
    def is_the_runtimes(self) -> ColumnElement[bool]:
        """In our own tables Handbell's answer tokens stand beside the runtime's: those have a request of ours."""
        return self.issued.c.attention_id == "" if self.is_ours else true()

    @property
    def revoked_at(self) -> ColumnElement[Any]:
        return self.issued.c.revoked_at if self.is_ours else null()

    @property
    def session_id(self) -> ColumnElement[Any]:
        return self.issued.c.session_id if self.is_ours else literal("")


class LedgerReader:
    """Asks one ledger. Every verb raises SourceUnavailable or SourceRefused, one line each without a secret."""

    def __init__(self, url: URL, *, issued_table: str, consumed_table: str) -> None:
        self._url = url
        self._engine: AsyncEngine = create_reader(url)
        self._named = (issued_table, consumed_table)
        self._shape: _Shape | None = None

    async def check(self) -> None:
        """Look at the tables anew; raises unless both are there with their columns."""
        self._shape = None
        async with self._connection():
            pass

    async def outstanding(self, *, now: float, after: Position | None, limit: int) -> Sequence[Row[Any]]:
        """Return a page of (jti, name, issued_at, expires_at, session_id): in their window, unredeemed, newest first.

        The page is complete where it is shorter than `limit`.
        """
        async with self._connection() as (connection, shape):
            found = await connection.execute(_page(shape, now=now, after=after, limit=limit))
            rows: Sequence[Row[Any]] = found.all()
        return rows

    async def look(self, jti: str) -> Row[Any]:
        """Return what both tables say of one token, all of it None where they say nothing.

        Columns: scope_hash, name, issued_at, expires_at, revoked_at, session_id, consumed_scope_hash, consumed_name,
        and `database_now`, the server's own time at the reading (epoch seconds; None for a file).
        """
        async with self._connection() as (connection, shape):
            statement = _look(shape, jti, has_clock=connection.dialect.name == "postgresql")
            row: Row[Any] = (await connection.execute(statement)).one()
        return row

    async def close(self) -> None:
        """Let go of the connections; safe to call twice."""
        await self._engine.dispose()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[tuple[AsyncConnection, _Shape]]:
        try:
            async with self._engine.connect() as connection:
                if self._shape is None:
                    self._shape = await connection.run_sync(self._find_shape)
                yield connection, self._shape
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            self._shape = None
            raise self._fault(error) from None

    def _find_shape(self, connection: Connection) -> _Shape:
        seen = inspect(connection)
        if seen.has_table(ISSUANCE.name) and seen.has_table(CONSUMPTION.name):
            return _Shape(ISSUANCE, CONSUMPTION, is_ours=True)
        for name, wanted in zip(self._named, (_ISSUED_COLUMNS, _CONSUMED_COLUMNS), strict=True):
            if not seen.has_table(name):
                raise SourceRefused(
                    "not_a_ledger", f"{self._place} has no table {name}: name the issuance ledger's database and tables"
                )
            types = {str(found["name"]): found["type"] for found in seen.get_columns(name)}
            for lacking in sorted(wanted - types.keys()):
                raise SourceRefused("not_a_ledger", f"{self._place} has no column {lacking} in the table {name}")
            for time in sorted(wanted & _TIMES):
                if not _holds_numbers(types[time]):
                    raise SourceRefused("not_a_ledger", f"{self._place} has no epoch seconds in {name}.{time}")
        issued, consumed = self._named
        return _Shape(_table(issued, _ISSUED_COLUMNS), _table(consumed, _CONSUMED_COLUMNS), is_ours=False)

    @property
    def _place(self) -> str:
        return f"the ledger, {database_place(self._url)},"

    def _fault(self, error: Exception) -> SourceUnavailable | SourceRefused:
        sqlstate = str(getattr(getattr(error, "orig", error), "sqlstate", None) or "")
        if sqlstate.startswith(_REFUSED_SQLSTATES):
            return SourceRefused("credentials_refused", f"{self._place} refuses the user, the password or the name")
        if isinstance(error, DBAPIError) and "unable to open database file" in str(error.orig):
            return SourceMissing("ledger_missing", f"{self._place} is not there: nothing was created")
        return SourceUnavailable(Incomplete.STORE_ERROR, f"{self._place} does not answer now ({type(error).__name__})")


def _table(name: str, columns: frozenset[str]) -> FromClause:
    typed = (column(each, Double() if each in _TIMES else String()) for each in sorted(columns))
    return table(name, *typed)


def _holds_numbers(kind: TypeEngine[Any]) -> bool:
    try:
        return issubclass(kind.python_type, int | float | Decimal)
    except NotImplementedError:  # a type that SQLAlchemy does not know
        return False


def _page(shape: _Shape, *, now: float, after: Position | None, limit: int) -> Select[Any]:
    issued, consumed = shape.issued.c, shape.consumed.c
    beyond = true() if after is None else tuple_(issued.issued_at, issued.jti) < tuple_(after.issued_at, after.jti)
    return (
        select(issued.jti, issued.name, issued.issued_at, issued.expires_at, shape.session_id.label("session_id"))
        .select_from(shape.issued.outerjoin(shape.consumed, consumed.jti == issued.jti))
        .where(
            issued.expires_at >= now,
            consumed.jti.is_(None),
            shape.revoked_at.is_(None),
            shape.is_the_runtimes,
            beyond,
        )
        .order_by(issued.issued_at.desc(), issued.jti.desc())
        .limit(limit)
    )


def _look(shape: _Shape, jti: str, *, has_clock: bool) -> Select[Any]:
    issued, consumed = shape.issued.c, shape.consumed.c
    asked = select(literal(jti).label("jti")).subquery()
    clock: ColumnElement[Any] = extract("epoch", func.statement_timestamp()) if has_clock else null()
    return select(
        issued.scope_hash,
        issued.name,
        issued.issued_at,
        issued.expires_at,
        shape.revoked_at.label("revoked_at"),
        shape.session_id.label("session_id"),
        consumed.scope_hash.label("consumed_scope_hash"),
        consumed.name.label("consumed_name"),
        clock.label("database_now"),
    ).select_from(
        asked.outerjoin(shape.issued, (issued.jti == asked.c.jti) & shape.is_the_runtimes).outerjoin(
            shape.consumed, consumed.jti == asked.c.jti
        )
    )


def is_instant(value: object) -> bool:
    """Return whether a column holds epoch seconds as the documentation has them."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
