"""What is outstanding, page by page, in a time that does not depend on how many tokens there are."""

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from sqlalchemy import Select, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.database import READ_ONLY
from reconciler.pause_store.failures import try_again
from reconciler.pause_store.tables import CONSUMPTION, ISSUANCE

PAGE_ROWS = 200


class Cursor(NamedTuple):
    """Behind which token the next page begins."""

    expires_at: float
    jti: str


@dataclass(frozen=True, slots=True)
class Outstanding:
    """A live token; times are epoch seconds. `attention_id` is empty for a runtime's own tokens."""

    jti: str
    name: str
    namespace: str
    attention_id: str
    key_id: str
    issued_at: float
    expires_at: float
    legacy_pinned: bool


@dataclass(frozen=True, slots=True)
class OutstandingPage:
    """The live tokens among the next rows, soonest expiry first; `after` is None where there are no more rows.

    A page may be empty and not the last: it looks at a fixed number of issuances, spent or not.
    """

    tokens: tuple[Outstanding, ...]
    after: Cursor | None

    @property
    def jtis(self) -> tuple[str, ...]:
        """The tokens' ids."""
        return tuple(token.jti for token in self.tokens)


async def outstanding(
    engine: AsyncEngine, *, now: float, after: Cursor | None = None, rows: int = PAGE_ROWS
) -> OutstandingPage:
    """Return one page of the tokens that are issued, unspent, unexpired at `now` and not revoked.

    Ordered by expiry and id, so that the first page begins where expired ones end and no page is lost or doubled
    while others are issued. Raises PauseStoreUnavailableError.
    """
    statement = page_statement(now=now, after=after, rows=rows)
    async with try_again(), engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        found = (await connection.execute(statement)).all()
    live = tuple(
        Outstanding(**{name: getattr(row, name) for name in _SHOWN})
        for row in found
        if row.consumed_at is None and row.revoked_at is None
    )
    return OutstandingPage(live, Cursor(found[-1].expires_at, found[-1].jti) if len(found) == rows else None)


def page_statement(*, now: float, after: Cursor | None, rows: int) -> Select[Any]:
    """Return the statement of one page: a range of the expiry index, each row joined to its redemption by key."""
    # One bound and no second one beside it: with both SQLite begins at the weaker, and walks to the page.
    is_further = ISSUANCE.c.expires_at >= now
    if after is not None and after.expires_at >= now:
        is_further = tuple_(ISSUANCE.c.expires_at, ISSUANCE.c.jti) > tuple_(*after)
    looked_at = (
        select(*(ISSUANCE.c[name] for name in _SHOWN), ISSUANCE.c.revoked_at)
        .where(is_further)
        .order_by(ISSUANCE.c.expires_at, ISSUANCE.c.jti)
        .limit(rows)
        .subquery()
    )
    return (
        select(looked_at, CONSUMPTION.c.consumed_at)
        .select_from(looked_at.outerjoin(CONSUMPTION, CONSUMPTION.c.jti == looked_at.c.jti))
        .order_by(looked_at.c.expires_at, looked_at.c.jti)
    )


_SHOWN = tuple(field.name for field in fields(Outstanding))


async def live_legacy(connection: AsyncConnection, *, now: float) -> tuple[str, ...]:
    """Return the ids of the tokens of the retired format that can still be redeemed, sorted."""
    found = await connection.scalars(
        select(ISSUANCE.c.jti)
        .select_from(ISSUANCE.outerjoin(CONSUMPTION, CONSUMPTION.c.jti == ISSUANCE.c.jti))
        .where(
            ISSUANCE.c.legacy_pinned,
            ISSUANCE.c.expires_at >= now,
            ISSUANCE.c.revoked_at.is_(None),
            CONSUMPTION.c.jti.is_(None),
        )
    )
    return tuple(sorted(found))
