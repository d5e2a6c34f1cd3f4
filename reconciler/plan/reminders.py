"""The next reminder of each place that was told: only ever one is planned, so that a long absence makes one."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.plan.case import Case
from reconciler.plan.rows import Place, Told, reminder
from reconciler.plan.wants import Key, Want
from reconciler.reasons import DecisionReason, DeliveryStatus
from reconciler.routes import Route, Routing

_ENDED = frozenset({DeliveryStatus.SENT, DeliveryStatus.DEAD})


@dataclass(frozen=True, slots=True)
class Reminders:
    """The reminders that are wanted, and the places whose reminders are used up."""

    wants: dict[Key, Want] = field(default_factory=dict)
    exhausted: Sequence[tuple[Place, Route]] = ()


def reminders(case: Case, routing: Routing, told: Iterable[Told]) -> Reminders:
    """Return the next reminder of each place where something was sent, `remind_every` after the last message there.

    A message that is due there before stands for the reminder, which then counts from it.
    """
    by_place: Mapping[Place, list[Told]] = defaultdict(list)
    for row in told:
        if not row.is_settle:
            by_place[row.place].append(row)
    wants: dict[Key, Want] = {}
    exhausted = []
    for place, rows in by_place.items():
        route = routing.owner(case.subject, place[0])
        last_at = _last_at(rows)
        if route is None or route.remind_every is None or last_at is None or place[0] not in routing.targets:
            continue
        if any(_is_under_way(row) for row in rows):
            continue
        number = 1 + max((row.reminder_number for row in rows if _is_used(row)), default=0)
        if route.remind_at_most is not None and number > route.remind_at_most:
            exhausted.append((place, route))
            continue
        due_at = case.later(last_at, route.remind_every)
        for before in _before(rows, due_at):
            due_at = max(due_at, case.later(before, route.remind_every))
        want = Want(
            routing.targets[place[0]],
            place[1],
            reminder(number),
            route,
            DecisionReason.REMINDED,
            due_at,
            route.digest_window,
        )
        wants[want.key] = want
    return Reminders(wants, exhausted)


def _last_at(rows: Sequence[Told]) -> datetime | None:
    """Return when something was last said there, or was given up; None where nothing ever arrived."""
    if not any(row.status is DeliveryStatus.SENT or row.may_have_arrived for row in rows):
        return None
    return max((row.ended_at for row in rows if row.status in _ENDED and row.ended_at is not None), default=None)


def _is_under_way(row: Told) -> bool:
    return row.reminder_number > 0 and row.is_undecided and not row.is_untouched


def _is_used(row: Told) -> bool:
    """A number is used once its reminder was tried; one that was only planned is planned again under it."""
    return row.reminder_number > 0 and not row.is_untouched and not row.is_revivable


def _before(rows: Sequence[Told], at: datetime) -> list[datetime]:
    return [row.due_at for row in rows if row.is_undecided and not row.reminder_number and row.due_at <= at]
