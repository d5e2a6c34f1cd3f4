"""Silences: what people want to hear nothing of for a time, kept in SQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.clock import Clock
from config.database import READ_ONLY
from reconciler.audit import record_audit
from reconciler.errors import UnknownSilence
from reconciler.plan import Silence
from reconciler.routes import Match
from reconciler.routing_tables import SILENCES


class Silences:
    """The door of people to them, for one of them (`actor`); each change is recorded.

    What is planned already is moved by `Replanner.matching`; until then the question before sending holds it.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock, *, actor: str) -> None:
        self._engine = engine
        self._clock = clock
        self._actor = actor

    async def add(self, match: Match, duration: timedelta, because: str) -> int:
        """Silence what fits for `duration`; return the silence's number."""
        now = self._clock.now()
        values = {
            "matcher": stored_match(match),
            "because": because,
            "actor": self._actor,
            "begins_at": now,
            "ends_at": now + duration,
        }
        async with self._engine.begin() as connection:
            number: int = (await connection.execute(insert(SILENCES).returning(SILENCES.c.id), [values])).scalar_one()
            detail = f"{say_match(match)} until {(now + duration).isoformat()}: {because}"
            await record_audit(connection, self._actor, "silence", f"silence {number}", detail, now=now)
        return number

    async def end(self, number: int) -> Match:
        """End a silence now and return what it matched; raises UnknownSilence where none of that number is left."""
        now = self._clock.now()
        async with self._engine.begin() as connection:
            found = await connection.execute(
                update(SILENCES)
                .where(SILENCES.c.id == number, SILENCES.c.ends_at > now)
                .values(ends_at=now)
                .returning(SILENCES.c.matcher)
            )
            row = found.first()
            if row is None:
                raise UnknownSilence(f"there is no silence {number} that has not ended: see `handbell silence list`")
            match = match_from(row.matcher)
            await record_audit(connection, self._actor, "end_silence", f"silence {number}", say_match(match), now=now)
        return match

    async def listed(self) -> list[dict[str, Any]]:
        """Return the silences that have not ended, with the field names of the public JSON."""
        async with self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            rows = await connection.execute(
                select(SILENCES).where(SILENCES.c.ends_at > self._clock.now()).order_by(SILENCES.c.id)
            )
            return [
                {
                    "id": row.id,
                    "match": row.matcher,
                    "because": row.because,
                    "actor": row.actor,
                    "begins_at": row.begins_at.isoformat(),
                    "ends_at": row.ends_at.isoformat(),
                }
                for row in rows
            ]


async def active_silences(connection: AsyncConnection, now: datetime) -> Sequence[Silence]:
    """Return the silences that have not ended."""
    rows = await connection.execute(
        select(SILENCES.c.matcher, SILENCES.c.ends_at).where(SILENCES.c.ends_at > now).order_by(SILENCES.c.id)
    )
    return [Silence(match_from(row.matcher), row.ends_at) for row in rows]


def match_from(stored: Mapping[str, Any]) -> Match:
    """Turn what `stored_match` made into a matcher."""
    return Match(
        namespace=tuple(stored.get("namespace", ())),
        kind=tuple(stored.get("kind", ())),
        agent=tuple(stored.get("agent", ())),
        requester=tuple(stored.get("requester", ())),
        labels={name: tuple(globs) for name, globs in stored.get("labels", {}).items()},
    )


def stored_match(match: Match) -> dict[str, Any]:
    """Return a matcher as it is stored: only what it states."""
    stated: dict[str, Any] = {
        name: list(globs)
        for name, globs in (
            ("namespace", match.namespace),
            ("kind", match.kind),
            ("agent", match.agent),
            ("requester", match.requester),
        )
        if globs
    }
    if match.labels:
        stated["labels"] = {name: list(globs) for name, globs in sorted(match.labels.items())}
    return stated


def say_match(match: Match) -> str:
    """Say a matcher on one line, `everything` for one that states nothing."""
    stored = stored_match(match)
    labels = stored.pop("labels", {})
    parts = [f"{name}={'|'.join(globs)}" for name, globs in stored.items()]
    parts += [f"labels.{name}={'|'.join(globs)}" for name, globs in labels.items()]
    return " ".join(parts) or "everything"
