"""Where every other module gets the time from, so that tests can move it instead of sleeping."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Tells the time, and waits for it."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""
        ...

    async def sleep(self, duration: timedelta) -> None:
        """Return when `duration` has passed on this clock; cancellation is re-raised."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""
        return datetime.now(UTC)

    async def sleep(self, duration: timedelta) -> None:
        """Return when `duration` has passed; cancellation is re-raised."""
        await asyncio.sleep(max(0.0, duration.total_seconds()))


class FrozenClock:
    """A clock that moves only when told to; whoever sleeps on it wakes as it passes their moment."""

    def __init__(self, at: datetime) -> None:
        assert at.tzinfo is not None, "an instant is aware"
        self._now = at.astimezone(UTC)
        self._moved = asyncio.Condition()

    def now(self) -> datetime:
        """Return the instant that the clock stands at."""
        return self._now

    async def advance(self, duration: timedelta) -> None:
        """Move forward by `duration` and wake every sleeper whose moment has come."""
        assert duration >= timedelta(0), "time does not run backwards"
        async with self._moved:
            self._now += duration
            self._moved.notify_all()

    async def sleep(self, duration: timedelta) -> None:
        """Return once the clock was advanced by `duration`; at once where it is not positive."""
        until = self._now + duration
        async with self._moved:
            await self._moved.wait_for(lambda: self._now >= until)
