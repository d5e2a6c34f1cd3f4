"""Reads what is enrolled: which ids are known, which references are to be asked about, and what is said of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncEngine

from config.database import READ_ONLY
from reconciler.references import Reference
from reconciler.states import OPEN_STATES, AttentionState, Evidence, Kind
from reconciler.tables import NOTIFICATIONS

_OPEN_WORDS = sorted(state.value for state in OPEN_STATES)
REFERENCE_COLUMNS = (
    NOTIFICATIONS.c.id,
    NOTIFICATIONS.c.namespace,
    NOTIFICATIONS.c.attention_id,
    NOTIFICATIONS.c.session_id,
    NOTIFICATIONS.c.session_instance_id,
    NOTIFICATIONS.c.kind,
    NOTIFICATIONS.c.action_id,
    NOTIFICATIONS.c.round_id,
    NOTIFICATIONS.c.tool_call_id,
    NOTIFICATIONS.c.source_sequence,
    NOTIFICATIONS.c.state,
    NOTIFICATIONS.c.reason,
    NOTIFICATIONS.c.observed_at,
    NOTIFICATIONS.c.verify_failures,
)


@dataclass(frozen=True, slots=True)
class Enrolled:
    """A request of ours with what its source needs to be asked about it again."""

    id: int
    namespace: str
    reference: Reference
    state: AttentionState
    reason: Evidence
    observed_at: datetime
    verify_failures: int


def enrolled_from(row: Row[Any]) -> Enrolled:
    """Turn a row of `REFERENCE_COLUMNS` into what it means."""
    reference = Reference(
        attention_id=row.attention_id,
        session_id=row.session_id,
        session_instance_id=row.session_instance_id,
        kind=Kind(row.kind),
        action_id=row.action_id,
        round_id=row.round_id,
        tool_call_id=row.tool_call_id,
        source_sequence=row.source_sequence,
    )
    return Enrolled(
        row.id,
        row.namespace,
        reference,
        AttentionState(row.state),
        Evidence(row.reason),
        row.observed_at,
        row.verify_failures,
    )


class EnrolledReader:
    """Reads the requests of one namespace; implements `Known` for its source."""

    def __init__(self, engine: AsyncEngine, namespace: str) -> None:
        self._engine = engine
        self._namespace = namespace

    async def enrolled(self, attention_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `attention_ids` that have a notification in the namespace."""
        statement = select(NOTIFICATIONS.c.attention_id).where(
            NOTIFICATIONS.c.namespace == self._namespace, NOTIFICATIONS.c.attention_id.in_(attention_ids)
        )
        return frozenset(row.attention_id for row in await self._read(statement))

    async def open_in_session(self, session_id: str) -> Sequence[Enrolled]:
        """Return the session's requests that are not terminal."""
        statement = select(*REFERENCE_COLUMNS).where(
            NOTIFICATIONS.c.namespace == self._namespace,
            NOTIFICATIONS.c.session_id == session_id,
            NOTIFICATIONS.c.state.in_(_OPEN_WORDS),
        )
        return [enrolled_from(row) for row in await self._read(statement)]

    async def has_open(self, session_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `session_ids` that hold a request which is not terminal."""
        statement = (
            select(NOTIFICATIONS.c.session_id)
            .where(
                NOTIFICATIONS.c.namespace == self._namespace,
                NOTIFICATIONS.c.session_id.in_(session_ids),
                NOTIFICATIONS.c.state.in_(_OPEN_WORDS),
            )
            .distinct()
        )
        return frozenset(row.session_id for row in await self._read(statement))

    async def open_after(self, after_id: int, *, due_at: datetime, limit: int) -> Sequence[Enrolled]:
        """Return open requests in the order of their ids, those whose next question is due, behind `after_id`."""
        statement = (
            select(*REFERENCE_COLUMNS)
            .where(
                NOTIFICATIONS.c.namespace == self._namespace,
                NOTIFICATIONS.c.state.in_(_OPEN_WORDS),
                NOTIFICATIONS.c.id > after_id,
                NOTIFICATIONS.c.verify_due_at <= due_at,
            )
            .order_by(NOTIFICATIONS.c.id)
            .limit(limit)
        )
        return [enrolled_from(row) for row in await self._read(statement)]

    async def _read(self, statement: Any) -> Sequence[Row[Any]]:
        async with self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            return (await connection.execute(statement)).all()
