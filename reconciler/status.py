"""What stands where now, in numbers and short lists: the reconciler's part of `handbell status`."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row, Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.database import READ_ONLY
from reconciler.handoff_store import Report, latest_reports
from reconciler.reasons import DeliveryStatus
from reconciler.source_book import SourceBook
from reconciler.states import AttentionState
from reconciler.tables import (
    DELEGATIONS,
    DELIVERIES,
    DESTINATIONS,
    NAMESPACES,
    NOTICES,
    NOTIFICATIONS,
    SWEEPS,
    WITHHELD,
)

_LATEST_SWEEPS = 10
_LISTED_DELEGATIONS = 100


async def read_status(engine: AsyncEngine, configured: SourceBook, destinations: Sequence[str]) -> dict[str, Any]:
    """Return what is true now; `destinations` are the configured ones, shown also where nothing was sent yet."""
    async with engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        return {
            "notifications": await _by_word(connection, NOTIFICATIONS.c.state, AttentionState),
            "deliveries": await _by_word(connection, DELIVERIES.c.status, DeliveryStatus),
            "sources": await _sources(connection, configured),
            "sweeps": await _sweeps(connection),
            "destinations": await _destinations(connection, destinations),
            "notices": await _notices(connection),
        }


async def _by_word(connection: AsyncConnection, column: Any, words: Any) -> dict[str, int]:
    rows = await connection.execute(select(column, func.count()).group_by(column))
    counted = {row[0]: row[1] for row in rows}
    return {word.value: counted.get(word.value, 0) for word in words}


async def _sources(connection: AsyncConnection, configured: SourceBook) -> list[dict[str, Any]]:
    rows = {row.namespace: row for row in await connection.execute(select(NAMESPACES))}
    withheld = await _counts(connection, select(WITHHELD.c.namespace, func.count()).group_by(WITHHELD.c.namespace))
    reports = await latest_reports(connection)
    types = {entry.namespace: entry.type for entry in configured.entries}
    return [
        {
            "namespace": name,
            "type": types.get(name) or rows[name].source_type,
            "configured": name in types,
            "store": rows[name].store_identity if name in rows else None,
            "enrolled_after": _text(rows[name].enrolled_after) if name in rows else None,
            "complete_since": _text(rows[name].complete_since) if name in rows else None,
            "sweep_due_at": _text(rows[name].sweep_due_at) if name in rows else None,
            "withheld": withheld.get(name, 0),
            "delegations": await _delegations(connection, name),
            "report": _report(reports[name]) if name in reports else None,
        }
        for name in sorted(set(rows) | set(types))
    ]


def _report(report: Report) -> dict[str, Any]:
    """Return what the newest repair pass of a handoff sender said of itself."""
    return {**asdict(report), "received_at": _text(report.received_at), "issues": list(report.issues)}


async def _delegations(connection: AsyncConnection, namespace: str) -> list[dict[str, str]]:
    rows = await connection.execute(
        select(DELEGATIONS.c.session_id, DELEGATIONS.c.child_session_id)
        .where(DELEGATIONS.c.namespace == namespace)
        .order_by(DELEGATIONS.c.seen_at.desc())
        .limit(_LISTED_DELEGATIONS)
    )
    return [{"session_id": row.session_id, "child_session_id": row.child_session_id} for row in rows]


async def _sweeps(connection: AsyncConnection) -> list[dict[str, Any]]:
    rows = await connection.execute(select(SWEEPS).order_by(SWEEPS.c.id.desc()).limit(_LATEST_SWEEPS))
    return [
        {
            "namespace": row.namespace,
            "mode": row.mode,
            "started_at": _text(row.started_at),
            "finished_at": _text(row.finished_at),
            "pages": row.pages,
            "rows": row.rows_seen,
            "changed": row.rows_changed,
            "verified": row.verified,
            "complete": row.is_complete,
            "problems": [word for word in row.problems.split(",") if word],
        }
        for row in rows
    ]


async def _destinations(connection: AsyncConnection, configured: Sequence[str]) -> list[dict[str, Any]]:
    rows: dict[str, Row[Any]] = {row.name: row for row in await connection.execute(select(DESTINATIONS))}
    waiting = await _counts(
        connection,
        select(DELIVERIES.c.destination, func.count())
        .where(DELIVERIES.c.status.in_([DeliveryStatus.PENDING.value, DeliveryStatus.UNKNOWN.value]))
        .group_by(DELIVERIES.c.destination),
    )
    return [
        {
            "name": name,
            "configured": name in configured,
            "waiting": waiting.get(name, 0),
            "broken_at": _text(rows[name].broken_at) if name in rows else None,
            "broken_reason": rows[name].broken_reason if name in rows else None,
            "paused_at": _text(rows[name].paused_at) if name in rows else None,
            "next_send_at": _text(rows[name].next_send_at) if name in rows else None,
        }
        for name in sorted(set(configured) | set(rows) | set(waiting))
    ]


async def _notices(connection: AsyncConnection) -> list[dict[str, Any]]:
    rows = await connection.execute(select(NOTICES).where(NOTICES.c.closed_at.is_(None)).order_by(NOTICES.c.id))
    return [
        {"kind": row.kind, "subject": row.subject, "detail": row.detail, "opened_at": _text(row.opened_at)}
        for row in rows
    ]


async def _counts(connection: AsyncConnection, statement: Select[Any]) -> dict[str, int]:
    return {row[0]: row[1] for row in await connection.execute(statement)}


def _text(instant: Any) -> str | None:
    return instant.isoformat() if instant is not None else None
