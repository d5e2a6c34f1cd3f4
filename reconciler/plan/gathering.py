"""Which messages are told together: one of them leads, the others are carried by it and go when it goes.

Two messages go together where they are for the same place and of the same occasion (openings, reminders or steps of
escalation), and neither has to wait longer than its route's window.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.plan.rows import OPEN, Decision, NewDelivery, Place
from reconciler.reasons import HOLDING, DecisionReason, Verdict

# So many requests in one message at most: longer lists are not read, and vendors cut them.
DIGEST_AT_MOST = 50

# Above the limit of openings within this time a destination gets digests, and each gathers for as long.
STORM_WINDOW = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Lead:
    """A planned message that others may join; `members` counts it and those that joined."""

    delivery_id: int
    destination: str
    recipient: str
    purpose: str
    due_at: datetime
    members: int


@dataclass(frozen=True, slots=True)
class Storm:
    """How many openings a destination got in the minute that began at `since_at`."""

    since_at: datetime
    openings: int


@dataclass(frozen=True, slots=True)
class Group:
    """Rows to store: a lead, standing (its id) or new (the first row), and the new rows that it carries."""

    lead_id: int | None
    rows: tuple[NewDelivery, ...]


@dataclass(frozen=True, slots=True)
class Gathered:
    """How new rows go together, the decisions that this took, and the storms as they stand then."""

    groups: tuple[Group, ...]
    decisions: tuple[Decision, ...]
    storms: Mapping[str, Storm]


def gather(rows: Sequence[NewDelivery], leads: Iterable[Lead], storms: Mapping[str, Storm], now: datetime) -> Gathered:
    """Decide for each new row whether it goes alone, leads or joins."""
    rows, decisions, storms = _stormed(rows, storms, now)
    draft: dict[tuple[Place, str], list[_Growing]] = defaultdict(list)
    for lead in leads:
        place = (lead.destination, lead.recipient)
        draft[place, occasion(lead.purpose)].append(_Growing(lead.delivery_id, lead.due_at, lead.members, []))
    groups: list[_Growing] = []
    for row in rows:
        standing = draft[row.place, occasion(row.purpose)] if row.window is not None else []
        joined = next((one for one in standing if one.takes(row)), None)
        if joined is None:
            joined = _Growing(None, row.due_at, 0, [])
            standing.append(joined)
        if joined not in groups:
            groups.append(joined)
        joined.rows.append(replace(row, due_at=joined.due_at))
        joined.members += 1
    return Gathered(tuple(Group(one.lead_id, tuple(one.rows)) for one in groups), tuple(decisions), storms)


def occasion(purpose: str) -> str:
    """Return the purpose without its number."""
    return purpose.partition(":")[0]


@dataclass(slots=True, eq=False)
class _Growing:
    lead_id: int | None
    due_at: datetime
    members: int
    rows: list[NewDelivery]

    def takes(self, row: NewDelivery) -> bool:
        """One that is held may not go before its hold ends; no other is early by more than its window."""
        assert row.window is not None, "only a row with a window joins"
        earliest = row.due_at if row.reason in HOLDING else row.due_at - row.window
        return self.members < DIGEST_AT_MOST and earliest <= self.due_at <= row.due_at


def _stormed(
    rows: Sequence[NewDelivery], storms: Mapping[str, Storm], now: datetime
) -> tuple[list[NewDelivery], list[Decision], Mapping[str, Storm]]:
    """Give a window to the openings above a destination's limit."""
    standing = dict(storms)
    seen: dict[str, set[int]] = defaultdict(set)
    result, decisions = [], []
    for row in rows:
        if row.purpose == OPEN and row.storm_limit is not None:
            storm = standing.get(row.destination)
            if storm is None or now - storm.since_at >= STORM_WINDOW:
                storm = Storm(now, 0)
            if row.notification_id not in seen[row.destination]:  # its other recipients are no opening more
                seen[row.destination].add(row.notification_id)
                storm = Storm(storm.since_at, storm.openings + 1)
            standing[row.destination] = storm
            if storm.openings > row.storm_limit and row.window is None and row.reason not in HOLDING:
                row = replace(row, window=STORM_WINDOW, due_at=row.due_at + STORM_WINDOW, reason=DecisionReason.STORM)
                decisions.append(_postponed(row))
        result.append(row)
    return result, decisions, standing


def _postponed(row: NewDelivery) -> Decision:
    return Decision(
        row.notification_id,
        Verdict.POSTPONED,
        DecisionReason.STORM,
        row.route,
        row.destination,
        row.recipient,
        row.purpose,
        row.due_at,
    )
