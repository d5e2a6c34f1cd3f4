"""Tells the operator of requests of which the runtime has not been able to say anything for too long.

Such a request is kept as it is and never called resolved: some stay unavailable for good in the runtime, and only a
person can put those aside (`handbell dismiss`). Many at once are one outage, and one notice.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.clock import Clock
from reconciler.notices import NoticeKind, close_notices, open_notice
from reconciler.routes import Target
from reconciler.states import AttentionState
from reconciler.tables import NOTICES, NOTIFICATIONS

log = structlog.get_logger()

# More overdue requests of a namespace than this are told as one: it is the source that is unavailable.
EACH_AT_MOST = 5

_KIND = NoticeKind.UNAVAILABLE_TOO_LONG


class OverdueNotices:
    """Opens and closes the notices; idempotent, at most one is open for each request and for each namespace."""

    def __init__(
        self, engine: AsyncEngine, clock: Clock, *, after: timedelta, targets: Callable[[], Sequence[Target]]
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._after = after
        self._targets = targets

    async def run(self) -> None:
        """Bring the notices to what is overdue now, in one transaction."""
        async with self._engine.begin() as connection:
            now = self._clock.now()
            overdue = await _overdue(connection, now - self._after)
            wanted = dict(entry for namespace, ids in overdue.items() for entry in self._wanted(namespace, ids))
            standing = await _open_subjects(connection)
            for subject in sorted(standing - set(wanted)):
                await close_notices(connection, [_KIND], subject, now=now)
            for subject in sorted(set(wanted) - standing):
                await open_notice(connection, _KIND, subject, wanted[subject], targets=self._targets(), now=now)
                log.warning("request.unavailable_too_long", subject=subject)

    def _wanted(self, namespace: str, attention_ids: Sequence[str]) -> Sequence[tuple[str, str]]:
        minutes = int(self._after.total_seconds() // 60)
        if len(attention_ids) > EACH_AT_MOST:
            text = f"More than {EACH_AT_MOST} requests of {namespace} have been unavailable for over {minutes} minutes."
            return [(namespace, text)]
        text = f"A request of {namespace} has been unavailable for over {minutes} minutes; look at it, or dismiss it."
        return [(f"{namespace} {attention_id}", text) for attention_id in attention_ids]


async def _overdue(connection: AsyncConnection, since: datetime) -> Mapping[str, Sequence[str]]:
    columns = NOTIFICATIONS.c
    rows = await connection.execute(
        select(columns.namespace, columns.attention_id)
        .where(
            columns.state == AttentionState.UNAVAILABLE.value,
            columns.state_changed_at < since,
            columns.dismissed_at.is_(None),
        )
        .order_by(columns.namespace, columns.attention_id)
    )
    overdue: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        overdue[row.namespace].append(row.attention_id)
    return overdue


async def _open_subjects(connection: AsyncConnection) -> frozenset[str]:
    rows = await connection.execute(
        select(NOTICES.c.subject).where(NOTICES.c.kind == _KIND.value, NOTICES.c.closed_at.is_(None))
    )
    return frozenset(row.subject for row in rows)
