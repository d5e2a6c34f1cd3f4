"""Keeps the health of a destination: what breaks it, pauses it, mends it, and the one notice that says so."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from reconciler.notices import NoticeKind, close_notices, open_notice
from reconciler.reasons import AttemptOutcome, DecisionReason, DeliveryStatus
from reconciler.tables import DELIVERIES, DESTINATIONS
from worker.channels.outcomes import FailureReason
from worker.delivery.claims import Health, read_health
from worker.delivery.tools import Tools
from worker.delivery.transitions import Transition

# These say something of the destination itself, not of one message: one is enough.
_CONCLUSIVE = frozenset({FailureReason.UNAUTHORIZED, FailureReason.DESTINATION_GONE})
_ARRIVED = frozenset({AttemptOutcome.SENT, AttemptOutcome.FOUND})


async def weigh(
    connection: AsyncConnection, tools: Tools, destination: str, outcomes: Sequence[Transition], known: Health
) -> None:
    """Store what the outcomes of a batch, in their order, say of the destination; the transaction is the caller's."""
    now = tools.clock.now()
    await _hold(connection, destination, [entry.held_until for entry in outcomes if entry.held_until is not None])
    if any(_counts(entry) for entry in outcomes):
        known = await read_health(connection, destination, is_noted=known.is_noted, locked=True)
    failures, reason = _count(outcomes, known.permanent_failures, tools.limits.permanent_limit)
    has_arrived = any(entry.attempt in _ARRIVED for entry in outcomes)
    if has_arrived and not known.is_flawless:
        await _mend(connection, destination, now)
        known = Health(next_send_at=known.next_send_at, paused_at=known.paused_at)
    if failures != known.permanent_failures:
        await _update(connection, destination, permanent_failures=failures)
    if failures >= tools.limits.permanent_limit and known.broken_at is None and reason is not None:
        await _break(connection, tools, destination, reason.value, known, now)
    if any(entry.status is DeliveryStatus.DEAD for entry in outcomes):
        await _pause_if_full(connection, tools, destination, now)


def _count(
    outcomes: Sequence[Transition], failures: int, limit: int
) -> tuple[int, DecisionReason | FailureReason | None]:
    """Return how many permanent failures there are in a row now, and the reason of the last."""
    reason = None
    for entry in outcomes:
        if entry.attempt in _ARRIVED:
            failures, reason = 0, None
        elif _counts(entry):
            failures, reason = max(failures + 1, limit if entry.reason in _CONCLUSIVE else 0), entry.reason
    return failures, reason


def _counts(entry: Transition) -> bool:
    """An edit whose target is gone says nothing of the destination."""
    return entry.attempt is AttemptOutcome.PERMANENT and entry.reason is not FailureReason.TARGET_GONE


async def _hold(connection: AsyncConnection, destination: str, untils: Sequence[datetime]) -> None:
    """A provider's Retry-After holds the whole destination."""
    if untils:
        until = max(untils)
        await connection.execute(
            update(DESTINATIONS)
            .where(
                DESTINATIONS.c.name == destination,
                or_(DESTINATIONS.c.next_send_at.is_(None), DESTINATIONS.c.next_send_at < until),
            )
            .values(next_send_at=until)
        )


async def _mend(connection: AsyncConnection, destination: str, now: datetime) -> None:
    await connection.execute(
        update(DESTINATIONS)
        .where(DESTINATIONS.c.name == destination, DESTINATIONS.c.broken_at.is_not(None))
        .values(next_send_at=None)
    )
    await _update(connection, destination, permanent_failures=0, broken_at=None, broken_reason=None)
    await close_notices(
        connection, (NoticeKind.DESTINATION_BROKEN, NoticeKind.DESTINATION_PAUSED), destination, now=now
    )


async def _break(
    connection: AsyncConnection, tools: Tools, destination: str, reason: str, known: Health, now: datetime
) -> None:
    probe_at = max(known.next_send_at or now, now + tools.limits.probe_every)
    await _update(connection, destination, broken_at=now, broken_reason=reason, next_send_at=probe_at)
    names = tools.destinations[destination].fallback
    meanwhile = f"Its fallback is used: {', '.join(names)}." if names else "It has no fallback: its messages wait."
    await open_notice(
        connection,
        NoticeKind.DESTINATION_BROKEN,
        destination,
        f"Destination {destination} refuses messages ({reason}). {meanwhile}",
        targets=tools.operator,
        now=now,
    )


async def _pause_if_full(connection: AsyncConnection, tools: Tools, destination: str, now: datetime) -> None:
    limit = tools.limits.dead_letter_limit
    dead = (
        select(DELIVERIES.c.id)
        .where(
            DELIVERIES.c.status == DeliveryStatus.DEAD.value,
            DELIVERIES.c.destination == destination,
            DELIVERIES.c.finished_at > now - tools.limits.dead_letter_window,
            DELIVERIES.c.reason != FailureReason.TARGET_GONE.value,
        )
        .limit(limit)
        .subquery()
    )
    if (await connection.execute(select(func.count()).select_from(dead))).scalar_one() < limit:
        return
    paused = await connection.execute(
        update(DESTINATIONS)
        .where(DESTINATIONS.c.name == destination, DESTINATIONS.c.paused_at.is_(None))
        .values(paused_at=now)
    )
    if paused.rowcount:
        await open_notice(
            connection,
            NoticeKind.DESTINATION_PAUSED,
            destination,
            f"Destination {destination} is paused: {limit} of its messages became dead letters. "
            f"What is new waits; `handbell redrive --destination {destination}` tries again.",
            targets=tools.operator,
            now=now,
        )


async def _update(connection: AsyncConnection, destination: str, **values: object) -> None:
    await connection.execute(update(DESTINATIONS).where(DESTINATIONS.c.name == destination).values(values))
