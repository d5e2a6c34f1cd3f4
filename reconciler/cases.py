"""Reads from the database what the plan must know of requests besides what was told about them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from reconciler.plan import Case, Span
from reconciler.routes import Subject
from reconciler.states import AttentionState, Kind
from reconciler.tables import HISTORY, NOTIFICATIONS

CASE_COLUMNS: Sequence[ColumnElement[Any]] = (
    NOTIFICATIONS.c.id,
    NOTIFICATIONS.c.namespace,
    NOTIFICATIONS.c.attention_id,
    NOTIFICATIONS.c.kind,
    NOTIFICATIONS.c.agent_name,
    NOTIFICATIONS.c.requester,
    NOTIFICATIONS.c.labels,
    NOTIFICATIONS.c.state,
    NOTIFICATIONS.c.first_seen_at,
    NOTIFICATIONS.c.dismissed_at,
    NOTIFICATIONS.c.acknowledged_until,
)
_SPAN_COLUMNS: Sequence[ColumnElement[Any]] = (HISTORY.c.notification_id, HISTORY.c.from_state, HISTORY.c.recorded_at)
_UNAVAILABLE = AttentionState.UNAVAILABLE.value


def case_from(row: Row[Any]) -> Case:
    """Turn a row of `CASE_COLUMNS` into a case, without the spans that do not count."""
    return Case(
        row.id,
        row.attention_id,
        Subject(row.namespace, Kind(row.kind), row.agent_name, row.requester, row.labels),
        AttentionState(row.state),
        row.first_seen_at,
        is_dismissed=row.dismissed_at is not None,
        acknowledged_until=row.acknowledged_until,
    )


async def read_cases(connection: AsyncConnection, notification_ids: Iterable[int]) -> list[Case]:
    """Return the requests, locked in the order of their ids until the transaction ends.

    Whoever plans outside the change of a state locks the request first and its deliveries after it, as the change
    does: so neither plans on what the other is just changing.
    """
    wanted = sorted(notification_ids)
    if not wanted:
        return []
    rows = await connection.execute(
        select(*CASE_COLUMNS)
        .where(NOTIFICATIONS.c.id.in_(wanted))
        .order_by(NOTIFICATIONS.c.id)
        .with_for_update(key_share=True)
    )
    return await with_spans(connection, [case_from(row) for row in rows])


async def with_spans(connection: AsyncConnection, cases: Sequence[Case]) -> list[Case]:
    """Return the cases with the spans in which each was unavailable.

    One that has not ended is left out: nothing is planned before it does.
    """
    if not cases:
        return []
    columns = HISTORY.c
    rows = (
        await connection.execute(
            select(*_SPAN_COLUMNS)
            .where(
                columns.notification_id.in_([case.notification_id for case in cases]),
                or_(columns.from_state == _UNAVAILABLE, columns.to_state == _UNAVAILABLE),
                columns.is_conflict.is_(False),
            )
            .order_by(columns.id)
        )
    ).all()
    spans = _spans(rows)
    return [replace(case, frozen=tuple(spans.get(case.notification_id, ()))) for case in cases]


def _spans(rows: Sequence[Row[Any]]) -> Mapping[int, list[Span]]:
    spans: dict[int, list[Span]] = defaultdict(list)
    begun: dict[int, datetime] = {}
    for row in rows:
        if row.from_state != _UNAVAILABLE:
            begun[row.notification_id] = row.recorded_at
        elif row.notification_id in begun:
            spans[row.notification_id].append(Span(begun.pop(row.notification_id), row.recorded_at))
    return spans
