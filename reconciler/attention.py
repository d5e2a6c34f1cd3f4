"""What people say about requests: «I am on it», «put it aside». Each is recorded, and changes what is planned."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.clock import Clock
from reconciler.audit import record_audit
from reconciler.cases import read_cases
from reconciler.errors import SettledAttention
from reconciler.plan import Trigger
from reconciler.planning import plan_all
from reconciler.routes import Routing
from reconciler.tables import NOTIFICATIONS


class Attention:
    """The doors of people, for one of them (`actor`); each call is one transaction.

    Raises SettledAttention where the request is over: then nothing is left to say.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock, routing: Callable[[], Routing], *, actor: str) -> None:
        self._engine = engine
        self._clock = clock
        self._routing = routing
        self._actor = actor

    async def acknowledge(self, notification_id: int, duration: timedelta) -> datetime:
        """Hold reminders, escalations and openings of the request for `duration`; return until when.

        Said again it counts from now: a shorter time ends the earlier one.
        """
        until = self._clock.now() + duration
        await self._say(notification_id, "ack", f"until {until.isoformat()}", acknowledged_until=until)
        return until

    async def dismiss(self, notification_id: int, because: str) -> None:
        """Put the request aside: nothing more is said about it until its end, or until this is undone."""
        await self._say(notification_id, "dismiss", because, dismissed_at=self._clock.now(), dismissed_because=because)

    async def undo_dismissal(self, notification_id: int, because: str) -> None:
        """Tell of the request again; what was due meanwhile goes at once, each message once."""
        await self._say(notification_id, "undo_dismiss", because, dismissed_at=None, dismissed_because=None)

    async def _say(self, notification_id: int, action: str, detail: str, **values: Any) -> None:
        now = self._clock.now()
        async with self._engine.begin() as connection:
            (case,) = await read_cases(connection, [notification_id])
            if case.state.is_terminal:
                raise SettledAttention(f"{case.attention_id} is {case.state.value} already: nothing more is said of it")
            await connection.execute(update(NOTIFICATIONS).where(NOTIFICATIONS.c.id == notification_id).values(values))
            subject = f"{case.subject.namespace}/{case.attention_id}"
            await record_audit(connection, self._actor, action, subject, detail, now=now)
            await _plan_again(connection, notification_id, self._routing(), now)


async def _plan_again(connection: AsyncConnection, notification_id: int, routing: Routing, now: datetime) -> None:
    await plan_all(connection, await read_cases(connection, [notification_id]), Trigger.ASKED, routing, now=now)
