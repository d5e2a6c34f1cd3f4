"""The right to do one bounded piece of work alone, until a time; a holder that dies loses it by itself."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from sqlalchemy import delete, or_, update
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock
from config.statements import insert_ignoring
from reconciler.tables import LEASES


class Lease:
    """A lease that is held; `renew` before `duration` has passed, or somebody else may take it."""

    def __init__(self, leases: "Leases", name: str, lease_id: str, duration: timedelta) -> None:
        self._leases = leases
        self.name = name
        self.lease_id = lease_id
        self.duration = duration

    async def renew(self) -> bool:
        """Hold on for another `duration`; False where the lease was lost meanwhile."""
        return await self._leases.extend(self)


class Leases:
    """Takes, renews and gives back leases; correctness never rests on one, only work done twice does."""

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    @asynccontextmanager
    async def hold(self, name: str, duration: timedelta) -> AsyncIterator[Lease | None]:
        """Hold the lease for the block; None where somebody else has it now."""
        lease = Lease(self, name, uuid.uuid4().hex, duration)
        if not await self._take(lease):
            yield None
            return
        try:
            yield lease
        finally:
            await self._give_back(lease)

    async def take_turn(self, name: str, every: timedelta) -> bool:
        """Answer whether the caller may do a regular piece of work now; then nobody may for `every`."""
        return await self._take(Lease(self, name, uuid.uuid4().hex, every))

    async def extend(self, lease: Lease) -> bool:
        """Move the end of a lease that is still ours; False where it is not."""
        async with self._engine.begin() as connection:
            result = await connection.execute(
                update(LEASES)
                .where(LEASES.c.name == lease.name, LEASES.c.lease_id == lease.lease_id)
                .values(leased_until=self._clock.now() + lease.duration)
            )
        return result.rowcount == 1

    async def end(self, prefix: str) -> int:
        """End every lease whose name begins so, whoever holds it; return how many there were."""
        async with self._engine.begin() as connection:
            result = await connection.execute(delete(LEASES).where(LEASES.c.name.startswith(prefix, autoescape=True)))
        return result.rowcount

    async def _take(self, lease: Lease) -> bool:
        now = self._clock.now()
        values = {"name": lease.name, "lease_id": lease.lease_id, "leased_until": now + lease.duration}
        async with self._engine.begin() as connection:
            inserted = await connection.execute(insert_ignoring(connection, LEASES).returning(LEASES.c.name), [values])
            if inserted.first() is not None:
                return True
            lapsed = or_(LEASES.c.leased_until <= now, LEASES.c.lease_id == lease.lease_id)
            result = await connection.execute(update(LEASES).where(LEASES.c.name == lease.name, lapsed).values(values))
        return result.rowcount == 1

    async def _give_back(self, lease: Lease) -> None:
        async with self._engine.begin() as connection:
            await connection.execute(
                delete(LEASES).where(LEASES.c.name == lease.name, LEASES.c.lease_id == lease.lease_id)
            )
