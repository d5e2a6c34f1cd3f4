"""Reads back from the database what the demo must prove: each request's state, and who was told how often."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from config.database import READ_ONLY
from reconciler.plan import OPEN, SETTLE
from reconciler.reasons import DeliveryStatus
from reconciler.states import TERMINAL_STATES
from reconciler.tables import DELIVERIES, NOTIFICATIONS
from sinks.tables import INBOX


@dataclass(frozen=True, slots=True)
class Shown:
    """One request as the database has it; `sent` counts sent messages by (destination, purpose)."""

    session_id: str
    attention_id: str
    kind: str
    state: str
    reason: str
    sent: dict[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Every request, oldest first, and how many hints the inbox holds."""

    requests: tuple[Shown, ...]
    hints: int


async def told_of_all(engine: AsyncEngine, requests: int) -> bool:
    """Answer whether that many requests are there and no opening waits."""
    evidence = await read_evidence(engine)
    return len(evidence.requests) == requests and not await _is_anything_open(engine)


async def settled_and_told(engine: AsyncEngine, requests: int) -> bool:
    """Answer whether that many requests are settled and nothing is left to send."""
    final = {state.value for state in TERMINAL_STATES}
    evidence = await read_evidence(engine)
    settled = sum(shown.state in final for shown in evidence.requests)
    return settled == requests and not await _is_anything_open(engine)


async def read_evidence(engine: AsyncEngine) -> Evidence:
    """Read everything in one transaction."""
    async with engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        rows = (await connection.execute(select(NOTIFICATIONS).order_by(NOTIFICATIONS.c.id))).all()
        sent: dict[int, dict[tuple[str, str], int]] = {}
        columns = DELIVERIES.c
        for row in await connection.execute(
            select(columns.notification_id, columns.destination, columns.purpose, func.count().label("number"))
            .where(columns.status == DeliveryStatus.SENT.value)
            .group_by(columns.notification_id, columns.destination, columns.purpose)
        ):
            sent.setdefault(row.notification_id, {})[row.destination, row.purpose] = row.number
        hints = (await connection.execute(select(func.count()).select_from(INBOX))).scalar_one()
    return Evidence(tuple(_shown(row, sent.get(row.id, {})) for row in rows), hints)


def messages(shown: Shown, destination: str) -> tuple[int, int]:
    """Return how many openings and how many settled messages went to a destination."""
    return shown.sent.get((destination, OPEN), 0), shown.sent.get((destination, SETTLE), 0)


async def _is_anything_open(engine: AsyncEngine) -> bool:
    unfinished = [DeliveryStatus.PENDING.value, DeliveryStatus.LEASED.value, DeliveryStatus.UNKNOWN.value]
    async with engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        found = await connection.execute(select(DELIVERIES.c.id).where(DELIVERIES.c.status.in_(unfinished)).limit(1))
        return found.first() is not None


def _shown(row: Any, sent: dict[tuple[str, str], int]) -> Shown:
    return Shown(row.session_id, row.attention_id, row.kind, row.state, row.reason, sent)
