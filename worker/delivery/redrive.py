"""Gives dead letters another try because a person says so; recorded in the audit."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, case, insert, literal, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.clock import Clock
from config.metadata import Instant
from reconciler import outbox
from reconciler.plan import Decision
from reconciler.reasons import DecisionReason, DeliveryStatus, Verdict
from reconciler.tables import AUDIT, DELIVERIES, DESTINATIONS

_IS_DEAD = DELIVERIES.c.status == DeliveryStatus.DEAD.value
_ACTION = "redrive"


class Redrive:
    """Sends dead letters back to the outbox; each method returns how many, 0 where there is nothing to try.

    Back-off and bounds start afresh, attempts keep their numbers. What is no longer true is not said: the source is
    asked again before each. A destination that was paused or broken may be used again at once; the notice about it
    stays open until something arrives there.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock, *, actor: str) -> None:
        self._engine = engine
        self._clock = clock
        self._actor = actor

    async def one(self, delivery_id: int) -> int:
        """Try one delivery again."""
        return await self._redrive(f"delivery {delivery_id}", DELIVERIES.c.id == delivery_id)

    async def destination(self, name: str) -> int:
        """Try again what is dead at a destination, and use it again even where nothing is."""
        return await self._redrive(f"destination {name}", DELIVERIES.c.destination == name, lift=(name,))

    async def all_dead(self) -> int:
        """Try again everything that is dead."""
        return await self._redrive("all dead", None)

    async def _redrive(self, subject: str, which: ColumnElement[bool] | None, *, lift: Sequence[str] = ()) -> int:
        now = self._clock.now()
        columns = DELIVERIES.c
        statement = (
            update(DELIVERIES)
            .where(_IS_DEAD)
            .values(
                status=DeliveryStatus.PENDING.value,
                reason=DecisionReason.REDRIVEN.value,
                next_attempt_at=now,
                forgiven_attempts=columns.attempts,
                give_up_at=None,
                # A provider that can be asked about the earlier try is asked again, as long as after a new one.
                begun_at=case((columns.begun_at.is_not(None), literal(now, Instant()))),
                finished_at=None,
            )
            .returning(columns.notification_id, columns.destination, columns.recipient, columns.purpose, columns.route)
        )
        async with self._engine.begin() as connection:
            rows = (await connection.execute(statement if which is None else statement.where(which))).all()
            await outbox.record_decisions(connection, [_decision(row) for row in rows if row.notification_id], now=now)
            await _lift(connection, sorted({row.destination for row in rows} | set(lift)))
            detail = f"{len(rows)} dead deliveries"
            values = {"done_at": now, "actor": self._actor, "action": _ACTION, "subject": subject, "detail": detail}
            await connection.execute(insert(AUDIT), [values])
        return len(rows)


def _decision(row: Any) -> Decision:
    return Decision(
        row.notification_id,
        Verdict.PLANNED,
        DecisionReason.REDRIVEN,
        row.route,
        row.destination,
        row.recipient,
        row.purpose,
    )


async def _lift(connection: AsyncConnection, names: Sequence[str]) -> None:
    """A Retry-After of a sound destination is kept; the probe time of a broken one is not."""
    columns = DESTINATIONS.c
    await connection.execute(
        update(DESTINATIONS)
        .where(columns.name.in_(names))
        .values(
            paused_at=None,
            broken_at=None,
            broken_reason=None,
            permanent_failures=0,
            next_send_at=case((columns.broken_at.is_(None), columns.next_send_at)),
        )
    )
