"""What the handoff keeps besides notifications: scan cursors and reports; and the references to ask a sender about."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.database import READ_ONLY
from config.statements import insert_ignoring
from reconciler.enrolled import REFERENCE_COLUMNS, Enrolled, enrolled_from
from reconciler.handoff_tables import HANDOFF_REPORTS, HANDOFF_SCANS
from reconciler.references import Observation
from reconciler.states import OPEN_STATES
from reconciler.tables import NOTIFICATIONS

KEPT_REPORTS = 100

_OPEN_WORDS = sorted(state.value for state in OPEN_STATES)


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """Where a sender's scan stands behind an accepted batch; `is_complete`: the scan ended, clean."""

    cursor: str | None
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Report:
    """What one repair pass of a sender did."""

    received_at: datetime
    runtime_version: str
    pages: int
    observed: int
    scan_complete: bool
    verify_complete: bool
    issues: tuple[str, ...]


class HandoffStore:
    """The rows of one namespace's sender. Every method is one transaction, safe to call twice."""

    def __init__(self, engine: AsyncEngine, namespace: str) -> None:
        self._engine = engine
        self._namespace = namespace

    async def scan_cursor(self) -> str | None:
        """Return where the sender's scan resumes; None is the top."""
        statement = select(HANDOFF_SCANS.c.scan_cursor).where(HANDOFF_SCANS.c.namespace == self._namespace)
        async with self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            return (await connection.execute(statement)).scalar_one_or_none()

    async def keep_scan(self, position: ScanPosition, *, now: datetime) -> None:
        """Keep where the scan stands; call it after its batch is committed, never before."""
        values = {"scan_cursor": None if position.is_complete else position.cursor, "changed_at": now}
        if position.is_complete:
            values["completed_at"] = now
        async with self._engine.begin() as connection:
            columns = HANDOFF_SCANS.c
            await connection.execute(
                insert_ignoring(connection, HANDOFF_SCANS).values(namespace=self._namespace, changed_at=now)
            )
            await connection.execute(update(HANDOFF_SCANS).where(columns.namespace == self._namespace).values(values))

    async def keep_report(self, report: Report) -> None:
        """Append a report, and let go of the oldest."""
        columns = HANDOFF_REPORTS.c
        async with self._engine.begin() as connection:
            await connection.execute(
                insert(HANDOFF_REPORTS).values(
                    namespace=self._namespace,
                    received_at=report.received_at,
                    runtime_version=report.runtime_version,
                    pages=report.pages,
                    observed=report.observed,
                    scan_complete=report.scan_complete,
                    verify_complete=report.verify_complete,
                    issues=",".join(report.issues),
                )
            )
            oldest_kept = (
                select(columns.id)
                .where(columns.namespace == self._namespace)
                .order_by(columns.id.desc())
                .offset(KEPT_REPORTS - 1)
                .limit(1)
                .scalar_subquery()
            )
            await connection.execute(
                delete(HANDOFF_REPORTS).where(columns.namespace == self._namespace, columns.id < oldest_kept)
            )

    async def open_references(self, after_id: int, *, session_id: str | None, limit: int) -> Sequence[Enrolled]:
        """Return open requests behind `after_id` in the order of their ids, of one session where it is named."""
        statement: Select[Any] = (
            select(*REFERENCE_COLUMNS)
            .where(
                NOTIFICATIONS.c.namespace == self._namespace,
                NOTIFICATIONS.c.state.in_(_OPEN_WORDS),
                NOTIFICATIONS.c.id > after_id,
            )
            .order_by(NOTIFICATIONS.c.id)
            .limit(limit)
        )
        if session_id is not None:
            statement = statement.where(NOTIFICATIONS.c.session_id == session_id)
        async with self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            return [enrolled_from(row) for row in (await connection.execute(statement)).all()]

    async def open_in_sessions(self, session_ids: Sequence[str], *, limit: int) -> Mapping[str, Sequence[Enrolled]]:
        """Return for each session at most `limit` open requests, those first that were heard of longest ago."""
        if not session_ids:
            return {}
        rank = (
            func.row_number()
            .over(partition_by=NOTIFICATIONS.c.session_id, order_by=(NOTIFICATIONS.c.observed_at, NOTIFICATIONS.c.id))
            .label("rank")
        )
        ranked = (
            select(*REFERENCE_COLUMNS, rank)
            .where(
                NOTIFICATIONS.c.namespace == self._namespace,
                NOTIFICATIONS.c.session_id.in_(sorted(set(session_ids))),
                NOTIFICATIONS.c.state.in_(_OPEN_WORDS),
            )
            .subquery()
        )
        statement = select(ranked).where(ranked.c.rank <= limit).order_by(ranked.c.rank)
        found: dict[str, list[Enrolled]] = defaultdict(list)
        async with self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            for row in await connection.execute(statement):
                item = enrolled_from(row)
                found[item.reference.session_id].append(item)
        return found

    async def complete_requests(self, observations: Sequence[Observation]) -> None:
        """Fill in who asks and for whom where that was not known; what is known is never changed or blanked.

        A request first seen `unavailable` comes without its requester; the first `active` one brings it. Call it
        before the observations are applied, so that the routes see it.
        """
        said = {
            item.reference.attention_id: item.request
            for item in observations
            if item.request is not None and (item.request.agent_name or item.request.requester)
        }
        if not said:
            return
        columns = NOTIFICATIONS.c
        statement = select(columns.id, columns.attention_id, columns.agent_name, columns.requester).where(
            columns.namespace == self._namespace,
            columns.attention_id.in_(sorted(said)),
            columns.state.in_(_OPEN_WORDS),
            columns.agent_name.is_(None) | columns.requester.is_(None),
        )
        async with self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            rows = (await connection.execute(statement)).all()
        for row in rows:
            new = {
                name: func.coalesce(columns[name], value)
                for name in ("agent_name", "requester")
                if row._mapping[name] is None and (value := getattr(said[row.attention_id], name)) is not None
            }
            if new:
                async with self._engine.begin() as connection:
                    await connection.execute(update(NOTIFICATIONS).where(columns.id == row.id).values(new))


async def latest_reports(connection: AsyncConnection) -> Mapping[str, Report]:
    """Return the newest report of every namespace that ever sent one."""
    columns = HANDOFF_REPORTS.c
    newest = select(func.max(columns.id)).group_by(columns.namespace)
    rows = await connection.execute(
        select(
            columns.namespace,
            columns.received_at,
            columns.runtime_version,
            columns.pages,
            columns.observed,
            columns.scan_complete,
            columns.verify_complete,
            columns.issues,
        ).where(columns.id.in_(newest))
    )
    return {
        row.namespace: Report(
            row.received_at,
            row.runtime_version,
            row.pages,
            row.observed,
            row.scan_complete,
            row.verify_complete,
            tuple(word for word in row.issues.split(",") if word),
        )
        for row in rows
    }
