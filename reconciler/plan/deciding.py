"""The plan itself: what is wanted, held where something holds it, against what stands in the outbox."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.plan.case import Case, Silence, Trigger
from reconciler.plan.holds import Hold, hold
from reconciler.plan.reminders import Reminders, reminders
from reconciler.plan.rows import Decision, Moved, NewDelivery, Plan, Told, message_key
from reconciler.plan.settling import cancelled, settle, withdraw
from reconciler.plan.wants import Key, Want, escalations, openings
from reconciler.reasons import DecisionReason, Verdict
from reconciler.routes import Route, Routing, matching
from reconciler.states import AttentionState


def plan(
    case: Case,
    trigger: Trigger,
    *,
    routing: Routing,
    told: Sequence[Told],
    now: datetime,
    silences: Sequence[Silence] = (),
) -> Plan:
    """Return what the request asks of the outbox now.

    Active: every opening and escalation of its routes, and the next reminder of each place that was told, moved to
    when they may be said; what no route wants any more is cancelled. Terminal: what was not sent is cancelled, and
    whoever was told, or may have been, is told the end. `unavailable` changes nothing: what is planned is frozen at
    the moment of sending, and planned anew, without the time that was lost, when the request is active again.
    """
    if case.state.is_terminal:
        return settle(case, told, now)
    if case.state is not AttentionState.ACTIVE:
        return Plan()
    if case.is_dismissed:
        return withdraw(case, told, DecisionReason.DISMISSED)
    return _active(_Draft(case, trigger, silences, now), routing, told)


def _active(draft: "_Draft", routing: Routing, told: Sequence[Told]) -> Plan:
    case = draft.case
    routes = list(matching(routing.routes, case.subject))
    standing: dict[Key, Told] = {(*row.place, row.purpose): row for row in told}
    wants = openings(case, routes, routing)
    wants |= escalations(case, routes, routing, draft.silences, standing, opening=wants, now=draft.now)
    reminding = reminders(case, routing, told)
    for key, want in (wants | reminding.wants).items():
        draft.want(want, standing.pop(key, None))
    for row in standing.values():
        if row.is_untouched and not row.is_settle and not _stands_in(case, row, routing):
            draft.cancel(row, DecisionReason.ROUTE_CHANGED if routes else DecisionReason.NO_ROUTE)
    if draft.trigger is Trigger.SEEN and not told:
        draft.suppress(routes)
    if draft.trigger is Trigger.TOLD:
        draft.exhaust(reminding)
    return draft.plan()


@dataclass(slots=True)
class _Draft:
    """A plan in the making."""

    case: Case
    trigger: Trigger
    silences: Sequence[Silence]
    now: datetime
    added: list[NewDelivery] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    cancelled: list[tuple[int, DecisionReason]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def plan(self) -> Plan:
        return Plan(tuple(self.added), tuple(self.moved), tuple(self.cancelled), tuple(self.decisions))

    def want(self, want: Want, row: Told | None) -> None:
        """Add the message, or see that it stands where it should."""
        due_at = max(want.due_at, self.now)
        held = hold(self.case, want.route, self.silences, due_at)
        due_at = held.until if held is not None else due_at
        reason = held.reason if held is not None else want.reason
        if row is None:
            self.added.append(self._new(want, due_at, reason))
            self._decide(want, held, due_at)
        elif row.is_revivable or (row.is_untouched and not self._stands_well(want, row, due_at)):
            self.moved.append(Moved(row.delivery_id, *want.key, due_at, want.route.name, reason, want.window))
            self._decide(want, held, due_at)

    def cancel(self, row: Told, reason: DecisionReason) -> None:
        """Take back a message that no route wants any more."""
        self.cancelled.append((row.delivery_id, reason))
        self.decisions.append(cancelled(self.case, row, reason))

    def suppress(self, routes: Sequence[Route]) -> None:
        """Say why nobody is told at all."""
        if not routes:
            self.decisions.append(Decision(self.case.notification_id, Verdict.SUPPRESSED, DecisionReason.NO_ROUTE))
        elif not self.added:
            self.decisions.append(
                Decision(self.case.notification_id, Verdict.SUPPRESSED, DecisionReason.NOBODY_NAMED, routes[0].name)
            )

    def exhaust(self, reminding: Reminders) -> None:
        """Say whose reminders are used up."""
        self.decisions += [
            Decision(self.case.notification_id, Verdict.SUPPRESSED, DecisionReason.REMINDED_ENOUGH, route.name, *place)
            for place, route in reminding.exhausted
        ]

    def _stands_well(self, want: Want, row: Told, due_at: datetime) -> bool:
        """A row that waits for its source to say something again goes at once when it has."""
        if self.trigger is Trigger.SEEN and row.reason == DecisionReason.SOURCE_UNAVAILABLE.value:
            return False
        standing = max(row.due_at, self.now)
        if want.window is None and row.reason != DecisionReason.STORM.value:
            return standing == due_at
        # One that is gathered goes with the others, not later than it would by itself.
        is_early = standing <= due_at or row.reason == DecisionReason.STORM.value
        return is_early and hold(self.case, want.route, self.silences, standing) is None

    def _new(self, want: Want, due_at: datetime, reason: DecisionReason) -> NewDelivery:
        key = message_key(
            self.case.subject.namespace, self.case.attention_id, want.target.name, want.recipient, want.purpose
        )
        return NewDelivery(
            self.case.notification_id,
            want.target.name,
            want.target.channel,
            want.recipient,
            want.purpose,
            key,
            want.route.name,
            reason,
            due_at,
            want.window,
            want.route.storm_limit,
        )

    def _decide(self, want: Want, held: Hold | None, due_at: datetime) -> None:
        self.decisions.append(
            Decision(
                self.case.notification_id,
                Verdict.PLANNED if held is None else Verdict.POSTPONED,
                want.reason if held is None else held.reason,
                want.route.name,
                want.target.name,
                want.recipient,
                want.purpose,
                due_at if due_at > self.now else None,
            )
        )


def _stands_in(case: Case, row: Told, routing: Routing) -> bool:
    """A message that a broken destination handed over stays with its stand-in."""
    if row.reminder_number:
        return False
    owner = routing.owner(case.subject, row.destination)
    return owner is not None and row.destination not in owner.destinations
