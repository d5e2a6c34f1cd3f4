"""Reads deliveries for people, and the story of one request: everything that was seen, decided and tried, in order."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.database import READ_ONLY
from reconciler.reasons import DeliveryStatus
from reconciler.tables import ATTEMPTS, DECISIONS, DELIVERIES, HISTORY, NOTIFICATIONS

_PAGE = 500
_WAITING = frozenset({DeliveryStatus.PENDING, DeliveryStatus.LEASED, DeliveryStatus.UNKNOWN})


async def deliveries(
    engine: AsyncEngine, *, notification_id: int | None = None, namespace: str | None = None
) -> AsyncIterator[dict[str, Any]]:
    """Yield every delivery that fits with the field names of the public JSON, oldest first, read in pages.

    Those of Handbell's own notices have no namespace and no attention id.
    """
    columns = DELIVERIES.c
    statement = (
        select(DELIVERIES, NOTIFICATIONS.c.namespace, NOTIFICATIONS.c.attention_id)
        .select_from(DELIVERIES.outerjoin(NOTIFICATIONS, columns.notification_id == NOTIFICATIONS.c.id))
        .order_by(columns.id)
        .limit(_PAGE)
    )
    if notification_id is not None:
        statement = statement.where(columns.notification_id == notification_id)
    if namespace is not None:
        statement = statement.where(NOTIFICATIONS.c.namespace == namespace)
    after_id = 0
    while True:
        async with engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            rows = (await connection.execute(statement.where(columns.id > after_id))).all()
        for row in rows:
            yield _listed(row)
        if len(rows) < _PAGE:
            return
        after_id = rows[-1].id


async def story(engine: AsyncEngine, notification_id: int) -> list[dict[str, Any]]:
    """Return what happened about a request, in time order.

    Each entry has `at`, `what` (state, conflict, planned, postponed, cancelled, suppressed, attempt), `reason`, where
    it applies `destination`, `recipient`, `purpose` and `route`, and a `detail` for reading.
    """
    async with engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        entries = [
            *await _states(connection, notification_id),
            *await _decisions(connection, notification_id),
            *await _attempts(connection, notification_id),
        ]
    # Sorted by instant; what happened in the same one stays in the order state, decision, attempt.
    return [_entry(at, **rest) for at, rest in sorted(entries, key=lambda entry: entry[0])]


async def _states(connection: AsyncConnection, notification_id: int) -> list[tuple[datetime, dict[str, Any]]]:
    rows = await connection.execute(
        select(HISTORY).where(HISTORY.c.notification_id == notification_id).order_by(HISTORY.c.id)
    )
    return [
        (
            row.recorded_at,
            {
                "what": "conflict" if row.is_conflict else "state",
                "reason": row.reason,
                "detail": f"{row.from_state or 'new'} -> {row.to_state}, by {row.door} at {_text(row.observed_at)}",
            },
        )
        for row in rows
    ]


async def _decisions(connection: AsyncConnection, notification_id: int) -> list[tuple[datetime, dict[str, Any]]]:
    rows = await connection.execute(
        select(DECISIONS).where(DECISIONS.c.notification_id == notification_id).order_by(DECISIONS.c.id)
    )
    return [
        (
            row.decided_at,
            {
                "what": row.verdict,
                "reason": row.reason,
                "destination": row.destination,
                "recipient": row.recipient,
                "purpose": row.purpose,
                "route": row.route,
                "detail": f"until {_text(row.until)}" if row.until else "",
            },
        )
        for row in rows
    ]


async def _attempts(connection: AsyncConnection, notification_id: int) -> list[tuple[datetime, dict[str, Any]]]:
    columns = ATTEMPTS.c
    rows = await connection.execute(
        select(ATTEMPTS, DELIVERIES.c.destination, DELIVERIES.c.recipient, DELIVERIES.c.purpose, DELIVERIES.c.route)
        .select_from(ATTEMPTS.join(DELIVERIES, columns.delivery_id == DELIVERIES.c.id))
        .where(DELIVERIES.c.notification_id == notification_id)
        .order_by(columns.id)
    )
    return [
        (
            row.started_at,
            {
                "what": "attempt",
                "reason": row.reason or row.outcome,
                "destination": row.destination,
                "recipient": row.recipient,
                "purpose": row.purpose,
                "route": row.route,
                "detail": _tried(row),
            },
        )
        for row in rows
    ]


def _tried(row: Row[Any]) -> str:
    parts = [f"try {row.number}: {row.outcome} after {row.duration_ms} ms"]
    if row.observed_state:
        parts.append(f"the source said {row.observed_state} ({row.observed_reason}) at {_text(row.observed_at)}")
    if row.provider_ref:
        parts.append(f"provider reference {row.provider_ref}")
    return "; ".join(parts)


def _entry(
    at: datetime,
    *,
    what: str,
    reason: str,
    detail: str,
    destination: str | None = None,
    recipient: str | None = None,
    purpose: str | None = None,
    route: str | None = None,
) -> dict[str, Any]:
    return {
        "at": _text(at),
        "what": what,
        "destination": destination,
        "recipient": recipient,
        "purpose": purpose,
        "reason": reason,
        "route": route,
        "detail": detail,
    }


def _listed(row: Row[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "namespace": row.namespace,
        "attention_id": row.attention_id,
        "destination": row.destination,
        "channel": row.channel,
        "recipient": row.recipient,
        "purpose": row.purpose,
        "status": row.status,
        "attempts": row.attempts,
        "reason": row.reason,
        "provider_ref": row.provider_ref,
        "next_attempt_at": _text(row.next_attempt_at) if row.status in _WAITING else None,
    }


def _text(at: datetime) -> str:
    return at.isoformat()
