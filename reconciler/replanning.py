"""Plans every open request anew: after the routes were changed, and when a silence begins or ends.

It goes through them in the order of their ids, one page a transaction, so memory and locks stay small however many
there are; where it stopped is a row, and whoever runs next goes on from there.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.clock import Clock
from config.database import READ_ONLY
from config.statements import insert_ignoring
from reconciler.cases import CASE_COLUMNS, case_from, read_cases
from reconciler.plan import Case, Trigger
from reconciler.planning import plan_all
from reconciler.routes import Match, Routing
from reconciler.routing_tables import ROUTING
from reconciler.states import OPEN_STATES
from reconciler.tables import NOTIFICATIONS

log = structlog.get_logger()

PAGE = 500

_NAME = "routes"
_OPEN_WORDS = sorted(state.value for state in OPEN_STATES)


def fingerprint(routing: Routing) -> str:
    """Return 64 hex digits that are the same exactly where the routes and what they name are the same."""
    known = [repr(route) for route in routing.routes]
    known += [repr(target) for _, target in sorted(routing.targets.items())]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Replanned:
    """How many requests were looked at, and how many deliveries came out new or changed."""

    requests: int = 0
    deliveries: int = 0


class Replanner:
    """Plans anew by the routes that this process has.

    While processes with different routes run (a release rolls out), the last that started or reloaded is followed:
    the others see another fingerprint and leave the work to it.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        routing: Callable[[], Routing],
        *,
        on_outbox: Callable[[], None] = lambda: None,
        page: int = PAGE,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._routing = routing
        self._on_outbox = on_outbox
        self._page = page

    async def adopt(self) -> bool:
        """Say that everything is to be planned by our routes; answer whether they are others than before."""
        ours, now = fingerprint(self._routing()), self._clock.now()
        async with self._engine.begin() as connection:
            statement = insert_ignoring(connection, ROUTING).returning(ROUTING.c.name)
            values = {"name": _NAME, "fingerprint": ours, "changed_at": now, "resume_after": 0}
            if (await connection.execute(statement, [values])).first() is not None:
                return True
            changed = await connection.execute(
                update(ROUTING)
                .where(ROUTING.c.name == _NAME, ROUTING.c.fingerprint != ours)
                .values(fingerprint=ours, changed_at=now, resume_after=0)
            )
        return changed.rowcount > 0

    async def run(self) -> Replanned:
        """Go on where the last run stopped, to the end; nothing to do is one cheap read. Safe to run twice at once."""
        ours, total = fingerprint(self._routing()), Replanned()
        while True:
            after = await self._resume_after(ours)
            if after is None:
                break
            done, last = await self._next_page(after, None, ours)
            total = Replanned(total.requests + done.requests, total.deliveries + done.deliveries)
            if last is None:
                log.info("routes.replanned", requests=total.requests, deliveries=total.deliveries)
        return total

    async def matching(self, match: Match) -> Replanned:
        """Plan the open requests that `match` accepts anew, now."""
        total, after = Replanned(), 0
        while True:
            done, last = await self._next_page(after, match, None)
            total = Replanned(total.requests + done.requests, total.deliveries + done.deliveries)
            if last is None:
                return total
            after = last

    async def _next_page(self, after: int, match: Match | None, ours: str | None) -> tuple[Replanned, int | None]:
        """Plan one page; return what came of it and its last id, None for the last page."""
        found = await self._open_after(after)
        last = found[-1].notification_id if len(found) == self._page else None
        ids = [case.notification_id for case in found if match is None or match.accepts(case.subject)]
        now = self._clock.now()
        async with self._engine.begin() as connection:
            cases = await read_cases(connection, ids)
            changed = await plan_all(connection, cases, Trigger.ASKED, self._routing(), now=now)
            if ours is not None:
                await _remember(connection, ours, last)
        if changed:
            self._on_outbox()
        return Replanned(len(ids), changed), last

    async def _open_after(self, after: int) -> Sequence[Case]:
        async with self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            rows = await connection.execute(
                select(*CASE_COLUMNS)
                .where(NOTIFICATIONS.c.state.in_(_OPEN_WORDS), NOTIFICATIONS.c.id > after)
                .order_by(NOTIFICATIONS.c.id)
                .limit(self._page)
            )
            return [case_from(row) for row in rows]

    async def _resume_after(self, ours: str) -> int | None:
        async with self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            found = await connection.execute(
                select(ROUTING.c.resume_after).where(ROUTING.c.name == _NAME, ROUTING.c.fingerprint == ours)
            )
            return found.scalar()


async def _remember(connection: AsyncConnection, ours: str, last: int | None) -> None:
    await connection.execute(
        update(ROUTING).where(ROUTING.c.name == _NAME, ROUTING.c.fingerprint == ours).values(resume_after=last)
    )
