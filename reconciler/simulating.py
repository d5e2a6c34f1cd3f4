"""Plays state changes through the plan without telling anybody: who would be told what, when and why. Pure.

Every message is taken to arrive at once; what the sources say is what the given changes say. Everything else is the
plan itself, the holds and the gathering that the running product uses.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconciler.plan import Case, Decision, Moved, NewDelivery, Plan, Silence, Span, Told, Trigger, hold, plan
from reconciler.plan.gathering import Lead, Storm, gather, occasion
from reconciler.plan.rows import digest_of
from reconciler.reasons import DecisionReason, DeliveryStatus
from reconciler.routes import Routing, Subject
from reconciler.states import AttentionState

TOLD = "told"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens at a moment: a state is seen, or a person says something.

    `subject` comes with the first event of a request; one that has none is of a request that is known already.
    """

    at: datetime
    attention_id: str = ""
    subject: Subject | None = None
    state: AttentionState | None = None
    acknowledged_until: datetime | None = None
    is_dismissed: bool | None = None
    silence: Silence | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that would happen: a message (`what` is `told`), or a decision about one."""

    at: datetime
    what: str
    attention_ids: tuple[str, ...]
    destination: str | None
    recipient: str | None
    purpose: str | None
    route: str | None
    reason: str
    until: datetime | None = None
    settled_ids: tuple[str, ...] = ()


@dataclass(slots=True)
class _Row:
    """A delivery in memory; `wakes_at` is None while it waits for its source."""

    told: Told
    notification_id: int
    wakes_at: datetime | None
    carrier_id: int | None = None
    told_with: tuple[int, ...] = ()


@dataclass(slots=True)
class Simulation:
    """One run; `play` may be called once."""

    routing: Routing
    lines: list[Line] = field(default_factory=list)
    _cases: dict[int, Case] = field(default_factory=dict)
    _ids: dict[tuple[str, str], int] = field(default_factory=dict)
    _rows: dict[int, _Row] = field(default_factory=dict)
    _silences: list[Silence] = field(default_factory=list)
    _storms: dict[str, Storm] = field(default_factory=dict)
    _unavailable_since: dict[int, datetime] = field(default_factory=dict)

    def play(self, events: Iterable[Event], until: datetime) -> Sequence[Line]:
        """Return everything that would happen up to and with `until`, in time order."""
        coming = sorted(events, key=lambda event: event.at)
        while True:
            moments = [event.at for event in coming[:1]]
            moments += [row.wakes_at for row in self._leads() if row.wakes_at is not None]
            if not moments or min(moments) > until:
                return self.lines
            now = min(moments)
            while coming and coming[0].at <= now:
                self._happens(coming.pop(0))
            self._deliver(now)

    def _happens(self, event: Event) -> None:
        if event.silence is not None:
            self._silences.append(event.silence)
            for case in list(self._cases.values()):
                self._plan(case, Trigger.ASKED, event.at)
            return
        case = self._known(event)
        if event.state is not None and not case.state.is_terminal:
            self._plan(self._seen(case, event.state, event.at), Trigger.SEEN, event.at)
        elif event.state is None:
            asked = replace(case, acknowledged_until=event.acknowledged_until or case.acknowledged_until)
            if event.is_dismissed is not None:
                asked = replace(asked, is_dismissed=event.is_dismissed)
            self._plan(asked, Trigger.ASKED, event.at)

    def _known(self, event: Event) -> Case:
        namespace = event.subject.namespace if event.subject is not None else None
        for (known, attention_id), notification_id in self._ids.items():
            if attention_id == event.attention_id and namespace in (None, known):
                return self._cases[notification_id]
        assert event.subject is not None, "the first event of a request says what it is"
        number = len(self._ids) + 1
        self._ids[event.subject.namespace, event.attention_id] = number
        self._cases[number] = Case(number, event.attention_id, event.subject, AttentionState.UNAVAILABLE, event.at)
        return self._cases[number]

    def _seen(self, case: Case, state: AttentionState, at: datetime) -> Case:
        number = case.notification_id
        if state is AttentionState.UNAVAILABLE:
            self._unavailable_since.setdefault(number, at)
        elif number in self._unavailable_since:
            span = Span(self._unavailable_since.pop(number), at)
            return replace(case, state=state, frozen=(*case.frozen, span))
        return replace(case, state=state)

    def _plan(self, case: Case, trigger: Trigger, now: datetime) -> None:
        number = case.notification_id
        self._cases[number] = case
        told = [row.told for row in self._rows.values() if row.notification_id == number]
        silences = [silence for silence in self._silences if now < silence.ends_at]
        made = plan(case, trigger, routing=self.routing, told=told, now=now, silences=silences)
        self._store(made, now)

    def _store(self, made: Plan, now: datetime) -> None:
        for delivery_id, reason in made.cancel:
            self._leave(delivery_id)
            row = self._rows[delivery_id]
            row.told = replace(row.told, status=DeliveryStatus.CANCELLED, reason=reason.value, ended_at=now)
        for moved in made.move:
            self._move(moved)
        gathered = gather(made.add, self._open_leads(now), self._storms, now)
        self._storms = dict(gathered.storms)
        for group in gathered.groups:
            carrier = group.lead_id
            for new in group.rows:
                added = self._add(new, carrier)
                carrier = added if carrier is None else carrier
        for decision in (*made.decisions, *gathered.decisions):
            self._decided(decision, now)

    def _add(self, new: NewDelivery, carrier: int | None) -> int:
        number = len(self._rows) + 1
        told = Told(
            number,
            new.destination,
            new.channel,
            new.recipient,
            new.purpose,
            DeliveryStatus.PENDING,
            new.route,
            new.reason.value,
            new.due_at,
        )
        self._rows[number] = _Row(told, new.notification_id, new.due_at, carrier)
        return number

    def _move(self, moved: Moved) -> None:
        self._leave(moved.delivery_id)
        row = self._rows[moved.delivery_id]
        row.told = replace(
            row.told,
            status=DeliveryStatus.PENDING,
            reason=moved.reason.value,
            due_at=moved.due_at,
            route=moved.route,
            ended_at=None,
        )
        row.wakes_at, row.carrier_id = moved.due_at, None

    def _leave(self, delivery_id: int) -> None:
        """Give the lead to the first that was carried."""
        carried = [number for number, row in self._rows.items() if row.carrier_id == delivery_id]
        for number in carried:
            self._rows[number].carrier_id = None if number == carried[0] else carried[0]

    def _deliver(self, now: datetime) -> None:
        due = [row for row in self._leads() if row.wakes_at is not None and row.wakes_at <= now]
        for lead in sorted(due, key=lambda row: (row.told.due_at, row.told.delivery_id)):
            if lead.told.status is DeliveryStatus.PENDING and lead.carrier_id is None:
                self._send(lead, now)

    def _send(self, lead: _Row, now: datetime) -> None:
        group = [lead, *(row for row in self._rows.values() if row.carrier_id == lead.told.delivery_id)]
        going = [row for row in group if row.told.status is DeliveryStatus.PENDING and self._may_go(row, now)]
        if not going:
            return
        told = tuple(row.notification_id for row in going)
        for row in going:
            row.told = replace(row.told, status=DeliveryStatus.SENT, reason="delivered", ended_at=now, attempts=1)
            row.told_with, row.carrier_id = told, None
        self._tell(going, now)
        for row in going:
            case = self._cases[row.notification_id]
            if not row.told.is_settle:
                self._plan(case, Trigger.TOLD, now)

    def _may_go(self, row: _Row, now: datetime) -> bool:
        case = self._cases[row.notification_id]
        if row.told.is_settle:
            return True
        if case.state is not AttentionState.ACTIVE:
            row.told = replace(row.told, reason=DecisionReason.SOURCE_UNAVAILABLE.value)
            row.wakes_at = None
            self._leave(row.told.delivery_id)
            row.carrier_id = None
            return False
        silences = [silence for silence in self._silences if now < silence.ends_at]
        held = hold(case, self.routing.owner(case.subject, row.told.destination), silences, now)
        if held is not None:
            row.wakes_at = held.until
        return held is None

    def _tell(self, going: Sequence[_Row], now: datetime) -> None:
        first = going[0].told
        members = {row.notification_id for row in going}
        if first.is_settle:
            members |= self._told_with(going[0])
        cases = [self._cases[number] for number in sorted(members)]
        waiting = tuple(case.attention_id for case in cases if not case.state.is_terminal)
        over = tuple(case.attention_id for case in cases if case.state.is_terminal)
        purpose = first.purpose if first.is_settle or len(members) == 1 else digest_of(first.purpose)
        reason = _why(first)
        self.lines.append(
            Line(now, TOLD, waiting, first.destination, first.recipient, purpose, first.route, reason, None, over)
        )

    def _told_with(self, row: _Row) -> set[int]:
        place = row.told.place
        openings = [
            other
            for other in self._rows.values()
            if other.notification_id == row.notification_id and other.told.place == place and other.told_with
        ]
        return set(openings[0].told_with) if openings else set()

    def _decided(self, decision: Decision, now: datetime) -> None:
        self.lines.append(
            Line(
                now,
                decision.verdict.value,
                (self._cases[decision.notification_id].attention_id,),
                decision.destination,
                decision.recipient,
                decision.purpose,
                decision.route,
                decision.reason.value,
                decision.until,
            )
        )

    def _leads(self) -> list[_Row]:
        return [
            row for row in self._rows.values() if row.told.status is DeliveryStatus.PENDING and row.carrier_id is None
        ]

    def _open_leads(self, now: datetime) -> list[Lead]:
        carried: dict[int, int] = defaultdict(int)
        for row in self._rows.values():
            if row.carrier_id is not None and row.told.status is DeliveryStatus.PENDING:
                carried[row.carrier_id] += 1
        return [
            Lead(
                row.told.delivery_id,
                row.told.destination,
                row.told.recipient,
                row.told.purpose,
                row.told.due_at,
                1 + carried[row.told.delivery_id],
            )
            for row in self._leads()
            if row.told.due_at > now and row.wakes_at == row.told.due_at
        ]


def _why(told: Told) -> str:
    if told.is_settle:
        return DecisionReason.SETTLED.value
    word = occasion(told.purpose)
    return {"reminder": DecisionReason.REMINDED, "escalation": DecisionReason.ESCALATED}.get(
        word, DecisionReason.ROUTED
    ).value
