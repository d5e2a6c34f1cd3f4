"""An outbox, a source and an engine around scripted channels: what the delivery tests stand on."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Table, select
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock, FrozenClock
from config.steps import StepHook, ignore_step
from reconciler.confirm import Confirmer
from reconciler.notifications import Applied, Notifications
from reconciler.reasons import Door
from reconciler.references import Request
from reconciler.routes import Route, Routing, Target, default_routes
from reconciler.sources.protocol import Source
from reconciler.states import AttentionState
from reconciler.tables import ATTEMPTS, DECISIONS, DELIVERIES, DESTINATIONS, NOTICES
from tests.support.scripted_source import ScriptedSource, observed
from worker.bells import Bell
from worker.channels.destination import Destination
from worker.delivery.batch import OnAttempt
from worker.delivery.engine import DeliveryEngine
from worker.delivery.limits import Limits
from worker.delivery.messages import Links

NAMESPACE = "prod"
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Delivering:
    """One outbox with its destinations; `engine()` makes a worker on it, as many as a test wants."""

    def __init__(
        self,
        database: AsyncEngine,
        destinations: Sequence[Destination],
        *,
        clock: Clock | None = None,
        source: Source | None = None,
        routed: Sequence[str] | None = None,
        routes: Sequence[Route] | None = None,
    ) -> None:
        self.database = database
        self.destinations = destinations
        self.clock: Any = clock or FrozenClock(START)
        self.source: Any = source or ScriptedSource(self.clock)
        self.sources: dict[str, Source] = {NAMESPACE: self.source}
        names = [one.name for one in destinations] if routed is None else routed
        targets = {one.name: Target(one.name, one.type, one.recipients, one.fallback) for one in destinations}
        self.routing = Routing(default_routes(names) if routes is None else tuple(routes), targets)
        self.notifications = Notifications(database, self.clock, lambda: self.routing)

    def engine(
        self,
        *,
        limits: Limits | None = None,
        operator: Sequence[str] = (),
        links: Links | None = None,
        on_step: StepHook = ignore_step,
        bell: Bell | None = None,
        luck: float = 0.5,
        on_attempt: OnAttempt = lambda _channel, _outcome, _reason, _took: None,
    ) -> DeliveryEngine:
        """Return a worker with jitter in the middle (no jitter)."""
        return DeliveryEngine(
            self.database,
            self.clock,
            self.destinations,
            Confirmer(self.clock, self.sources.get, self.notifications),
            bell=bell,
            operator=operator,
            links=links,
            limits=limits,
            on_step=on_step,
            on_attempt=on_attempt,
            luck=lambda: luck,
            routing=lambda: self.routing,
        )

    async def see(self, name: str, state: AttentionState = AttentionState.ACTIVE, *, door: Door = Door.HINT) -> Applied:
        """Apply an observation, and let the source say the same from now on."""
        if isinstance(self.source, ScriptedSource):
            self.source.states[name] = state
        request = Request(agent_name="billing") if state is AttentionState.ACTIVE else None
        return await self.notifications.apply(NAMESPACE, [observed(name, state, self.clock.now(), request)], door=door)

    async def pass_time(self, worker: DeliveryEngine, duration: timedelta, step: timedelta) -> None:
        """Let `duration` pass in steps, delivering what is due after each."""
        passed = timedelta(0)
        while passed < duration:
            await self.clock.advance(step)
            passed += step
            await worker.run_due()

    async def deliveries(self, **having: object) -> list[dict[str, Any]]:
        """Return the outbox, oldest first, filtered by column values."""
        return await self._rows(DELIVERIES, having)

    async def delivery(self, **having: object) -> dict[str, Any]:
        """Return the one delivery that fits."""
        (row,) = await self.deliveries(**having)
        return row

    async def attempts(self, **having: object) -> list[dict[str, Any]]:
        """Return the attempts."""
        return await self._rows(ATTEMPTS, having)

    async def decisions(self, **having: object) -> list[dict[str, Any]]:
        """Return the decisions."""
        return await self._rows(DECISIONS, having)

    async def notices(self, **having: object) -> list[dict[str, Any]]:
        """Return the notices."""
        return await self._rows(NOTICES, having)

    async def destination(self, name: str) -> dict[str, Any]:
        """Return the health row of a destination."""
        async with self.database.connect() as connection:
            found = await connection.execute(select(DESTINATIONS).where(DESTINATIONS.c.name == name))
            return dict(found.mappings().one())

    async def _rows(self, table: Table, having: Mapping[str, object]) -> list[dict[str, Any]]:
        statement = select(table).order_by(table.c.id)
        for column, value in having.items():
            statement = statement.where(table.c[column] == value)
        async with self.database.connect() as connection:
            return [dict(row) for row in (await connection.execute(statement)).mappings()]
