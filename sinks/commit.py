"""Commits a batch to the inbox, and finds the one row that a database refuses among the many that it takes.

A data error (the row itself is refused) is bisected down to the row, which becomes a dead letter. Every other error
(a lost connection, a lock, a missing table) says nothing about the rows: it is let through, nothing is acknowledged.
"""

from collections.abc import Sequence

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError

from sinks.batch import Received
from sinks.dead_letters import REFUSED_BY_DATABASE, DeadEntry, dead_entry
from sinks.inbox import HintKey, Inbox


async def commit(
    inbox: Inbox, received: Sequence[Received], dead: Sequence[DeadEntry]
) -> tuple[frozenset[HintKey], frozenset[str]]:
    """Commit all; return the keys that are new, and the tokens whose hint became a row.

    One transaction, or, where a row is refused, several: each is whole, and doing it all again is harmless.
    """
    try:
        inserted = await inbox.insert([item.hint for item in received], dead)
    except (SQLAlchemyError, UnicodeError, OverflowError) as error:
        if not is_data_error(error) or not received:
            raise
        return await _bisect(inbox, received, dead)
    return inserted, frozenset(item.token for item in received if item.token is not None)


async def _bisect(
    inbox: Inbox, received: Sequence[Received], dead: Sequence[DeadEntry]
) -> tuple[frozenset[HintKey], frozenset[str]]:
    if len(received) == 1:
        entry = received[0].entry
        await inbox.insert([], [*dead, dead_entry(entry.stream_id, entry.fields, REFUSED_BY_DATABASE)])
        return frozenset(), frozenset()
    middle = len(received) // 2
    left_keys, left_tokens = await commit(inbox, received[:middle], dead)
    right_keys, right_tokens = await commit(inbox, received[middle:], ())
    return left_keys | right_keys, left_tokens | right_tokens


def is_data_error(error: Exception) -> bool:
    """Say whether the database refused the data themselves, so that trying again cannot help."""
    if isinstance(error, DataError | IntegrityError | UnicodeError | OverflowError):
        return True
    # asyncpg's server errors keep their class in `sqlstate` (PostgreSQL appendix A: 22 data exception, 23 integrity
    # constraint violation, 54 a limit of the server, such as an index entry's length); what its client side cannot
    # encode is a ValueError beneath.
    if isinstance(error, DBAPIError) and error.orig is not None:
        state = getattr(error.orig, "sqlstate", None)
        return str(state)[:2] in {"22", "23", "54"} or isinstance(error.orig.__cause__, ValueError)
    return False
