"""Computes the gauges from SQL at a scrape: what waits, what is open, what is dead, and for how long."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector
from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.clock import Clock
from config.database import READ_ONLY
from reconciler.handoff_tables import HANDOFF_REPORTS
from reconciler.reasons import DeliveryStatus
from reconciler.states import OPEN_STATES, AttentionState
from reconciler.tables import DELIVERIES, DESTINATIONS, NAMESPACES, NOTICES, NOTIFICATIONS
from sinks.tables import INBOX, INBOX_DEAD
from worker import metrics
from worker.metrics import Gauge, Sample

_OPEN_WORDS = sorted(state.value for state in OPEN_STATES)
_DUE_WORDS = [DeliveryStatus.PENDING.value, DeliveryStatus.UNKNOWN.value]


async def read_gauges(engine: AsyncEngine, clock: Clock, namespaces: Sequence[str]) -> list[Sample]:
    """Return every gauge's values, of one moment; raises SQLAlchemy's errors.

    `namespaces` are the configured ones: what is remembered of another is nobody's work any more.
    """
    now = clock.now()
    async with engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        samples = [Sample(metrics.DATABASE_UP, 1)]
        samples += await _inbox(connection, now)
        samples += await _notifications(connection, now)
        samples += await _deliveries(connection, now)
        samples += await _upkeep(connection, now, namespaces)
        return samples


def database_down() -> list[Sample]:
    """Return what is shown where the gauges cannot be read: that, and nothing that would look like zero."""
    return [Sample(metrics.DATABASE_UP, 0)]


def exposition(registry: CollectorRegistry, samples: Iterable[Sample]) -> bytes:
    """Return the text that Prometheus reads: the process's own counters, then the gauges."""
    scraped = CollectorRegistry()
    scraped.register(_Scrape(list(samples)))
    return bytes(generate_latest(registry) + generate_latest(scraped))


class _Scrape(Collector):
    def __init__(self, samples: list[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Give the samples, gauge by gauge."""
        families: dict[str, GaugeMetricFamily] = {}
        for sample in self._samples:
            gauge = sample.gauge
            family = families.setdefault(
                gauge.name, GaugeMetricFamily(gauge.name, gauge.meaning, labels=list(gauge.labels))
            )
            family.add_metric(list(sample.labels), sample.value)
        return list(families.values())


async def _inbox(connection: AsyncConnection, now: datetime) -> list[Sample]:
    waiting = (await connection.execute(_count(INBOX).where(INBOX.c.processed_at.is_(None)))).scalar_one()
    oldest = select(func.min(INBOX.c.received_at)).where(INBOX.c.processed_at.is_(None))
    dead = (await connection.execute(_count(INBOX_DEAD))).scalar_one()
    return [
        Sample(metrics.INBOX_UNPROCESSED, waiting),
        await _age(connection, metrics.INBOX_LAG, oldest, now),
        Sample(metrics.INBOX_DEAD, dead),
    ]


async def _notifications(connection: AsyncConnection, now: datetime) -> list[Sample]:
    columns = NOTIFICATIONS.c
    rows = await connection.execute(select(columns.state, func.count()).group_by(columns.state))
    counted = {row[0]: row[1] for row in rows}
    by_state = [Sample(metrics.NOTIFICATIONS, counted.get(state, 0), (state.value,)) for state in AttentionState]
    oldest = select(func.min(columns.first_seen_at)).where(columns.state.in_(_OPEN_WORDS))
    return [*by_state, await _age(connection, metrics.OLDEST_OPEN, oldest, now)]


async def _deliveries(connection: AsyncConnection, now: datetime) -> list[Sample]:
    columns = DELIVERIES.c
    rows = await connection.execute(
        select(columns.status, columns.reason, func.count()).group_by(columns.status, columns.reason)
    )
    counted = [Sample(metrics.DELIVERIES, row[2], (row[0], row[1] or "")) for row in rows]
    dead = sum(sample.value for sample in counted if sample.labels[0] == DeliveryStatus.DEAD)
    oldest = select(func.min(columns.next_attempt_at)).where(columns.status.in_(_DUE_WORDS))
    return [
        *counted,
        Sample(metrics.DEAD_LETTERS, dead),
        await _age(connection, metrics.OLDEST_DUE, oldest, now),
    ]


async def _upkeep(connection: AsyncConnection, now: datetime, namespaces: Sequence[str]) -> list[Sample]:
    broken = _count(DESTINATIONS).where(DESTINATIONS.c.broken_at.is_not(None) | DESTINATIONS.c.paused_at.is_not(None))
    notices = _count(NOTICES).where(NOTICES.c.closed_at.is_(None))
    reports = HANDOFF_REPORTS.c
    newest = (
        select(func.max(reports.received_at).label("at"))
        .where(reports.namespace.in_(namespaces))
        .group_by(reports.namespace)
    )
    overdue = select(func.min(NAMESPACES.c.sweep_due_at)).where(NAMESPACES.c.namespace.in_(namespaces))
    silent = select(func.min(newest.subquery().c.at))
    return [
        await _age(connection, metrics.SWEEP_OVERDUE, overdue, now),
        Sample(metrics.BROKEN_DESTINATIONS, (await connection.execute(broken)).scalar_one()),
        Sample(metrics.OPEN_NOTICES, (await connection.execute(notices)).scalar_one()),
        await _age(connection, metrics.HANDOFF_REPORT_AGE, silent, now),
    ]


def _count(table: Any) -> Select[Any]:
    return select(func.count()).select_from(table)


async def _age(connection: AsyncConnection, gauge: Gauge, oldest: Select[Any], now: datetime) -> Sample:
    at = (await connection.execute(oldest)).scalar_one_or_none()
    return Sample(gauge, max(0.0, (now - at).total_seconds()) if at is not None else 0.0)
