"""What is read of the notifications that deliveries are about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncConnection

from reconciler.enrolled import REFERENCE_COLUMNS, Enrolled, enrolled_from
from reconciler.plan import Case
from reconciler.routes import Subject
from reconciler.tables import NOTIFICATIONS

_REQUEST_COLUMNS: Sequence[ColumnElement[Any]] = (
    *REFERENCE_COLUMNS,
    NOTIFICATIONS.c.agent_name,
    NOTIFICATIONS.c.requester,
    NOTIFICATIONS.c.public_session_id,
    NOTIFICATIONS.c.first_seen_at,
    NOTIFICATIONS.c.state_changed_at,
    NOTIFICATIONS.c.dismissed_at,
    NOTIFICATIONS.c.acknowledged_until,
    NOTIFICATIONS.c.labels,
)


@dataclass(frozen=True, slots=True)
class Request:
    """The notification that a delivery is about."""

    enrolled: Enrolled
    agent_name: str | None
    requester: str | None
    public_session_id: str | None
    first_seen_at: datetime
    state_changed_at: datetime
    is_dismissed: bool
    acknowledged_until: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def case(self) -> Case:
        """Return the request as the plan sees it."""
        known = self.enrolled
        subject = Subject(known.namespace, known.reference.kind, self.agent_name, self.requester, self.labels)
        return Case(
            known.id,
            known.reference.attention_id,
            subject,
            known.state,
            self.first_seen_at,
            self.is_dismissed,
            self.acknowledged_until,
        )


async def read_requests(connection: AsyncConnection, ids: Sequence[int]) -> Mapping[int, Request]:
    """Return the requests by their ids."""
    if not ids:
        return {}
    rows = await connection.execute(select(*_REQUEST_COLUMNS).where(NOTIFICATIONS.c.id.in_(ids)))
    return {
        row.id: Request(
            enrolled_from(row),
            row.agent_name,
            row.requester,
            row.public_session_id,
            row.first_seen_at,
            row.state_changed_at,
            is_dismissed=row.dismissed_at is not None,
            acknowledged_until=row.acknowledged_until,
            labels=row.labels,
        )
        for row in rows
    }
