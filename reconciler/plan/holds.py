"""What keeps a message that is due from being said: an acknowledgement, a silence, quiet hours."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciler.plan.case import Case, Silence
from reconciler.reasons import DecisionReason
from reconciler.routes import Route


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing may be said before `until`, for `reason`."""

    reason: DecisionReason
    until: datetime


def hold(case: Case, route: Route | None, silences: Sequence[Silence], at: datetime) -> Hold | None:
    """Return until when a message that is due at `at` is held, None where it may go then.

    Holds that follow each other without a gap are one; the last gives the reason.
    """
    found: Hold | None = None
    while True:
        holds = list(_holds(case, route, silences, at))
        if not holds:
            return found
        found = max(holds, key=lambda one: one.until)
        at = found.until


def _holds(case: Case, route: Route | None, silences: Sequence[Silence], at: datetime) -> Iterator[Hold]:
    if case.acknowledged_until is not None and at < case.acknowledged_until:
        yield Hold(DecisionReason.ACKNOWLEDGED, case.acknowledged_until)
    for silence in silences:
        if at < silence.ends_at and silence.match.accepts(case.subject):
            yield Hold(DecisionReason.SILENCED, silence.ends_at)
    quiet = route.quiet if route is not None else None
    if quiet is not None and quiet.holds(case.subject.kind):
        ends_at = quiet.end_after(at)
        if ends_at is not None:
            yield Hold(DecisionReason.QUIET_HOURS, ends_at)
