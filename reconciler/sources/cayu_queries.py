"""The questions to an open Cayu store, each one call of its own, and what keeps an answer from being complete."""

from typing import TYPE_CHECKING

from reconciler.errors import SourceUnavailable
from reconciler.sources.cayu_store import OpenStore
from reconciler.sources.protocol import Incomplete

if TYPE_CHECKING:
    from cayu.sessions import PendingActionListResult

# Cayu's own limit (PendingActionQuery.limit, 0.15.0); smaller pages cost more for each row.
PAGE_LIMIT = 200


async def has_session(opened: OpenStore, session_id: str) -> bool:
    """Answer whether the store knows the session; an id that no store could hold (an alias, a NUL) it does not."""
    from cayu.sessions import PendingActionQuery

    try:
        PendingActionQuery(session_id=session_id)
    except ValueError:
        return False
    return await opened.store.load(session_id) is not None


async def query_actions(
    opened: OpenStore, cursor: str | None, limit: int, *, session_id: str | None
) -> "PendingActionListResult":
    """Ask for pending actions; a page that is too large is asked for again with half as many rows.

    Raises SourceUnavailable with the reason `page_too_large` or `cursor_refused`; else what the store raises.
    """
    from cayu.sessions import PendingActionQuery, PendingActionResultTooLarge

    while True:
        try:
            query = PendingActionQuery(cursor=cursor, limit=limit, session_id=session_id)
            return await opened.store.query_pending_actions(query)
        except PendingActionResultTooLarge:
            if limit == 1:
                raise SourceUnavailable(Incomplete.PAGE_TOO_LARGE, "one pending action is too large to read") from None
            limit //= 2
        except ValueError:
            if cursor is None:
                raise
            raise SourceUnavailable(Incomplete.CURSOR_REFUSED, "the store does not take the scan's cursor") from None


def page_problems(result: "PendingActionListResult", cursor: str | None, unprojectable: int) -> frozenset[Incomplete]:
    problems = problems_of(result, unprojectable)
    if result.next_cursor is None and result.has_more:
        problems |= {Incomplete.HAS_MORE}
    if cursor is not None and result.next_cursor == cursor:
        problems |= {Incomplete.REPEATED_CURSOR}
    return problems


def problems_of(result: "PendingActionListResult", unprojectable: int) -> frozenset[Incomplete]:
    problems = set()
    if result.issues:
        problems.add(Incomplete.PENDING_ACTION_ISSUES)
    if unprojectable:
        problems.add(Incomplete.UNPROJECTABLE_ACTION)
    return frozenset(problems)
