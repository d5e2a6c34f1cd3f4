"""Deletes what is over and old enough, in small bites; never an open request, never what waits for a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import ColumnElement, Table, and_, delete, exists, not_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock
from reconciler.pause_store.tables import ANSWERS, CAPTURES, CROSS_SCOPE_AUDIT, ISSUANCE
from reconciler.reasons import DeliveryStatus
from reconciler.routing_tables import SILENCES
from reconciler.states import OPEN_STATES, TERMINAL_STATES
from reconciler.tables import AUDIT, DELIVERIES, NOTICES, NOTIFICATIONS, SWEEPS, WITHHELD
from sinks.tables import INBOX, INBOX_DEAD

log = structlog.get_logger()

_BITE = 1000
_BITES = 20
_UNFINISHED = [DeliveryStatus.PENDING.value, DeliveryStatus.LEASED.value, DeliveryStatus.UNKNOWN.value]


@dataclass(frozen=True, slots=True)
class Keep:
    """How long what is over is kept."""

    hints: timedelta
    settled: timedelta
    sweeps: timedelta
    dead_entries: timedelta
    audit: timedelta


class Retention:
    """Keeps the tables from growing without end."""

    def __init__(self, engine: AsyncEngine, clock: Clock, keep: Keep) -> None:
        self._engine = engine
        self._clock = clock
        self._keep = keep

    async def run(self) -> None:
        """Delete at most 20,000 rows of each table; safe to run anywhere, at any time."""
        now = self._clock.now()
        removed = {}
        for table, condition in self._rules(now):
            count = await self._delete(table, condition)
            if count:
                removed[table.name] = count
        if removed:
            log.info("retention.deleted", **removed)

    def _rules(self, now: datetime) -> Sequence[tuple[Table, ColumnElement[bool]]]:
        keep = self._keep
        unfinished = exists().where(
            DELIVERIES.c.notification_id == NOTIFICATIONS.c.id, DELIVERIES.c.status.in_(_UNFINISHED)
        )
        settled = and_(
            NOTIFICATIONS.c.state.in_(sorted(state.value for state in TERMINAL_STATES)),
            NOTIFICATIONS.c.state_changed_at < now - keep.settled,
            not_(unfinished),
        )
        return (
            (INBOX, INBOX.c.processed_at < now - keep.hints),
            (INBOX_DEAD, INBOX_DEAD.c.received_at < now - keep.dead_entries),
            (NOTIFICATIONS, settled),
            (NOTICES, NOTICES.c.closed_at < now - keep.settled),
            (SWEEPS, SWEEPS.c.finished_at < now - keep.sweeps),
            (WITHHELD, WITHHELD.c.seen_at < now - keep.settled),
            (AUDIT, AUDIT.c.done_at < now - keep.audit),
            (SILENCES, SILENCES.c.ends_at < now - keep.audit),
            *self._pause_rules(now),
        )

    def _pause_rules(self, now: datetime) -> Sequence[tuple[Table, ColumnElement[bool]]]:
        """Return the rules of pause tokens, whose times are epoch seconds; a redemption goes with its issuance.

        Without its capture an open request could not be answered any more.
        """
        is_open = exists().where(
            NOTIFICATIONS.c.namespace == CAPTURES.c.namespace,
            NOTIFICATIONS.c.attention_id == CAPTURES.c.attention_id,
            NOTIFICATIONS.c.state.in_(sorted(state.value for state in OPEN_STATES)),
        )
        over = (now - self._keep.settled).timestamp()
        audited = (now - self._keep.audit).timestamp()
        return (
            (ISSUANCE, ISSUANCE.c.expires_at < over),
            (ANSWERS, ANSWERS.c.accepted_at < over),
            (CAPTURES, and_(CAPTURES.c.captured_at < now - self._keep.settled, not_(is_open))),
            (CROSS_SCOPE_AUDIT, CROSS_SCOPE_AUDIT.c.at < audited),
        )

    async def _delete(self, table: Table, condition: ColumnElement[bool]) -> int:
        """Delete by the whole key: two namespaces may know the same attention id."""
        columns: Sequence[Any] = list(table.primary_key.columns)
        key, total = tuple_(*columns) if len(columns) > 1 else columns[0], 0
        for _ in range(_BITES):
            async with self._engine.begin() as connection:
                result = await connection.execute(
                    delete(table).where(key.in_(select(*columns).where(condition).limit(_BITE)))
                )
            total += result.rowcount
            if result.rowcount < _BITE:
                break
        return total


RETENTION_EVERY = timedelta(hours=1)
