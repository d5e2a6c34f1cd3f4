"""What the routes want said about an active request, each message with its moment: openings and escalations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.plan.case import Case, Silence
from reconciler.plan.holds import hold
from reconciler.plan.rows import OPEN, Place, Told, escalation
from reconciler.reasons import DecisionReason
from reconciler.routes import Route, Routing, Target

Key = tuple[str, str, str]
"""Which message: destination, recipient and purpose."""

_NO_TIME = timedelta(0)


@dataclass(frozen=True, slots=True)
class Want:
    """One message that is wanted; `due_at` is before anything holds it."""

    target: Target
    recipient: str
    purpose: str
    route: Route
    reason: DecisionReason
    due_at: datetime
    window: timedelta | None = None

    @property
    def key(self) -> Key:
        """Return which message it is."""
        return self.target.name, self.recipient, self.purpose


def openings(case: Case, routes: Sequence[Route], routing: Routing) -> dict[Key, Want]:
    """Return the opening of each place; where several routes name one the first decides."""
    wants: dict[Key, Want] = {}
    for route in routes:
        for position, target in enumerate(routing.targets_of(route.notify)):
            delay = (route.stagger or _NO_TIME) * position
            reason = DecisionReason.STAGGERED if delay else DecisionReason.ROUTED
            reason = DecisionReason.GATHERED if route.digest_window else reason
            due_at = case.later(case.first_seen_at, delay + (route.digest_window or _NO_TIME))
            for recipient in target.recipients:
                want = Want(target, recipient, OPEN, route, reason, due_at, route.digest_window)
                wants.setdefault(want.key, want)
    return wants


def escalations(
    case: Case,
    routes: Sequence[Route],
    routing: Routing,
    silences: Sequence[Silence],
    told: Mapping[Key, Told],
    *,
    opening: Mapping[Key, Want],
    now: datetime,
) -> dict[Key, Want]:
    """Return every step of escalation; all of them are planned at once, so that none waits for another's sending.

    `opening` is what `openings` wants: a step counts from when the first opening of its route was due, or will be.
    """
    wants: dict[Key, Want] = {}
    for route in routes:
        opened_at = _opened_at(case, route, routing, silences, told, opening, now)
        for number, step in enumerate(route.escalate, start=1):
            due_at = case.later(opened_at, step.after)
            for target in routing.targets_of(step.notify):
                for recipient in target.recipients:
                    want = Want(
                        target,
                        recipient,
                        escalation(number),
                        route,
                        DecisionReason.ESCALATED,
                        due_at,
                        route.digest_window,
                    )
                    wants.setdefault(want.key, want)
    return _without_repeats(wants, told)


def _opened_at(
    case: Case,
    route: Route,
    routing: Routing,
    silences: Sequence[Silence],
    told: Mapping[Key, Told],
    opening: Mapping[Key, Want],
    now: datetime,
) -> datetime:
    """Return when the first opening of the route was due, or is: what is held begins its escalation when it goes.

    An opening that is only planned now (the routes were edited) is due now, not when the request was first seen.
    """
    places = [
        (target.name, recipient, OPEN) for target in routing.targets_of(route.notify) for recipient in target.recipients
    ]
    dues = [told[key].due_at for key in places if key in told and (told[key].is_undecided or told[key].ended_at)]
    dues = dues or [_due_at(case, opening[key], silences, now) for key in places if key in opening and key not in told]
    if dues:
        return min(dues)
    held = hold(case, route, silences, case.first_seen_at)
    return held.until if held is not None else case.first_seen_at


def _due_at(case: Case, want: Want, silences: Sequence[Silence], now: datetime) -> datetime:
    due_at = max(want.due_at, now)
    held = hold(case, want.route, silences, due_at)
    return held.until if held is not None else due_at


def _without_repeats(wants: dict[Key, Want], told: Mapping[Key, Told]) -> dict[Key, Want]:
    """Leave out a step for a place that has had an escalation whose number the routes no longer know.

    Steps are known by their number: one put in front of them must not escalate again to who was told already.
    """
    had: dict[Place, int] = {}
    for key, row in told.items():
        if row.escalation_number and key not in wants and not row.is_untouched and not row.is_revivable:
            had[row.place] = had.get(row.place, 0) + 1
    kept: dict[Key, Want] = {}
    for key, want in wants.items():
        place = key[:2]
        if key not in told and had.get(place):
            had[place] -= 1
        else:
            kept[key] = want
    return kept
