"""Stories: a real database, scripted channels and a clock that jumps from one due moment to the next, never slept."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock
from reconciler.attention import Attention
from reconciler.listing import find_notification
from reconciler.reasons import DeliveryStatus
from reconciler.replanning import Replanner
from reconciler.routes import Match, Route, Routing
from reconciler.silences import Silences
from reconciler.states import AttentionState
from reconciler.tables import DELIVERIES
from tests.support.delivering import NAMESPACE, Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of

BERLIN = "Europe/Berlin"
DAY = date(2026, 3, 3)

Said = tuple[str, str, str]
"""A message: local time (HH:MM, with +N for N days later), destination, and what it says."""


class Story:
    """A day in one time zone; `said` is what the people got, in order.

    Instants are written "HH:MM" on the story's first day, or "+1 HH:MM" on the next.
    """

    def __init__(
        self,
        database: AsyncEngine,
        routes: Sequence[Route],
        *,
        begins: str = "09:00",
        day: date = DAY,
        zone: str = BERLIN,
        destinations: Iterable[str] = ("ops", "mail"),
        fallback: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.zone, self.day = ZoneInfo(zone), day
        self.channels = {name: ScriptedChannel(name) for name in destinations}
        made = [destination_of(one, fallback=(fallback or {}).get(name, ())) for name, one in self.channels.items()]
        self.house = Delivering(database, made, clock=FrozenClock(self.at(begins)), routes=routes)
        self.worker = self.house.engine()
        self.said: list[Said] = []
        self._heard = 0

    def at(self, text: str) -> datetime:
        """Return the instant of a local time."""
        later, _, clock = text.rpartition(" ")
        local = datetime.combine(self.day + timedelta(days=int(later or 0)), time.fromisoformat(clock))
        return local.replace(tzinfo=self.zone).astimezone(UTC)

    async def opens(self, *names: str) -> None:
        """Let requests be seen as active."""
        for name in names:
            await self.house.see(name)
        await self._deliver()

    async def becomes(self, name: str, state: AttentionState) -> None:
        """Let a request be seen in another state."""
        await self.house.see(name, state)
        await self._deliver()

    async def until(self, text: str, *, working: bool = True) -> None:
        """Move the clock there, stopping wherever something is due; not `working`: nobody delivers meanwhile."""
        goal = self.at(text)
        while working and (due := await self._next_due()) is not None and due <= goal:
            await self._move_to(due)
        await self._move_to(goal, working=working)

    async def acknowledges(self, name: str, duration: timedelta) -> None:
        """Let somebody be on it."""
        await self._doors().acknowledge(await self._id(name), duration)
        await self._deliver()

    async def dismisses(self, name: str) -> None:
        """Let somebody put it aside."""
        await self._doors().dismiss(await self._id(name), "not ours")
        await self._deliver()

    async def undoes(self, name: str) -> None:
        """Let somebody take that back."""
        await self._doors().undo_dismissal(await self._id(name), "ours after all")
        await self._deliver()

    async def silences(self, match: Match, duration: timedelta) -> int:
        """Let somebody silence what matches; return its number."""
        number = await Silences(self.house.database, self.house.clock, actor="ada").add(match, duration, "a release")
        await self._replanner().matching(match)
        await self._deliver()
        return number

    async def ends_silence(self, number: int) -> None:
        """Let somebody end a silence."""
        match = await Silences(self.house.database, self.house.clock, actor="ada").end(number)
        await self._replanner().matching(match)
        await self._deliver()

    async def edits(self, *routes: Route) -> None:
        """Let the routes be others, and everything be planned by them."""
        self.house.routing = Routing(routes, self.house.routing.targets)
        replanner = self._replanner()
        await replanner.adopt()
        await replanner.run()
        await self._deliver()

    async def reasons(self, name: str) -> list[tuple[str, str, str | None, str | None]]:
        """Return (verdict, reason, purpose, route) of the decisions about a request, in order."""
        rows = await self.house.decisions(notification_id=await self._id(name))
        return [(row["verdict"], row["reason"], row["purpose"], row["route"]) for row in rows]

    def _doors(self) -> Attention:
        return Attention(self.house.database, self.house.clock, lambda: self.house.routing, actor="ada")

    def _replanner(self) -> Replanner:
        return Replanner(self.house.database, self.house.clock, lambda: self.house.routing, page=2)

    async def _id(self, name: str) -> int:
        return await find_notification(self.house.database, name, NAMESPACE)

    async def _next_due(self) -> datetime | None:
        columns = DELIVERIES.c
        waiting = [DeliveryStatus.PENDING.value, DeliveryStatus.UNKNOWN.value]
        async with self.house.database.connect() as connection:
            found = await connection.execute(
                select(func.min(columns.next_attempt_at).label("due")).where(columns.status.in_(waiting))
            )
            due = found.scalar()
        return datetime.fromisoformat(due) if isinstance(due, str) else due

    async def _move_to(self, at: datetime, *, working: bool = True) -> None:
        await self.house.clock.advance(max(at - self.house.clock.now(), timedelta(0)))
        if working:
            await self._deliver()

    async def _deliver(self) -> None:
        await self.worker.run_due()
        heard = [
            (context.now, name, message) for name, channel in self.channels.items() for message, context in channel.sent
        ]
        for at, name, message in sorted(heard, key=lambda one: one[0])[self._heard :]:
            waiting = sorted(item.attention_id for item in message.items if not item.state.is_terminal)
            over = sorted(item.attention_id for item in message.items if item.state.is_terminal)
            words = [message.purpose, *waiting, *(f"-{one}" for one in over)]
            self.said.append((self.local(at), name, " ".join(words)))
        self._heard = len(heard)

    def local(self, at: datetime) -> str:
        """Return an instant as the story writes it."""
        local = at.astimezone(self.zone)
        days = (local.date() - self.day).days
        return f"+{days} {local:%H:%M}" if days else f"{local:%H:%M}"


def route(*notify: str, number: int = 0, **of: object) -> Route:
    """Return a route that matches everything."""
    return replace(Route(f"routes[{number}]", Match(), notify), **of)  # type: ignore[arg-type]
