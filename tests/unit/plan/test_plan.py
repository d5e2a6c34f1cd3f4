"""The plan as a function: equal inputs give equal rows, made twice it changes nothing, and it never doubles."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

from hypothesis import given
from hypothesis import strategies as st

from reconciler.plan import Case, Plan, Silence, Told, Trigger, plan
from reconciler.quiet import Quiet
from reconciler.reasons import DecisionReason, DeliveryStatus, Verdict
from reconciler.routes import Escalation, Match, Route, Routing, Subject, Target
from reconciler.states import AttentionState, Kind

START = datetime(2026, 3, 3, 9, 0, tzinfo=UTC)
NAMES = ("ops", "mail", "boss")
TARGETS = {
    "ops": Target("ops", "slack", ("ops",), ("mail",)),
    "mail": Target("mail", "email", ("a@example.com", "b@example.com")),
    "boss": Target("boss", "email", ("boss@example.com",)),
}
SUBJECT = Subject("prod", Kind.TOOL_APPROVAL, "billing", None, {"team": "red"})
CASE = Case(1, "attention_1", SUBJECT, AttentionState.ACTIVE, START)

minutes = st.integers(1, 600).map(lambda count: timedelta(minutes=count))
names = st.lists(st.sampled_from(NAMES), max_size=3, unique=True).map(tuple)
quiets = st.builds(
    Quiet, st.builds(time, st.integers(0, 11)), st.builds(time, st.integers(12, 23)), st.just("Europe/Berlin")
)
routes = st.builds(
    Route,
    name=st.sampled_from(["routes[0]", "routes[1]"]),
    match=st.sampled_from([Match(), Match(agent=("bill*",)), Match(agent=("none",))]),
    notify=names,
    goes_on=st.booleans(),
    remind_every=st.none() | minutes,
    remind_at_most=st.none() | st.integers(1, 3),
    escalate=st.lists(st.builds(Escalation, minutes, names), max_size=2).map(tuple),
    stagger=st.none() | minutes,
    quiet=st.none() | quiets,
)
routings = st.lists(routes, max_size=3).map(lambda some: Routing(tuple(some), TARGETS))
silences = st.lists(st.builds(Silence, st.just(Match()), minutes.map(lambda after: START + after)), max_size=1)
times = st.integers(0, 3000).map(lambda count: START + timedelta(minutes=count))
states = st.sampled_from(list(AttentionState))
cases = st.builds(
    replace,
    st.just(CASE),
    state=states,
    is_dismissed=st.booleans(),
    acknowledged_until=st.none() | times,
)


def stored(told: Sequence[Told], made: Plan) -> list[Told]:
    """Return the outbox as it stands when a plan is stored."""
    cancelled = dict(made.cancel)
    moved = {row.delivery_id: row for row in made.move}
    rows = []
    for row in told:
        if row.delivery_id in cancelled:
            row = replace(row, status=DeliveryStatus.CANCELLED, reason=cancelled[row.delivery_id].value)
        elif row.delivery_id in moved:
            move = moved[row.delivery_id]
            row = replace(
                row, status=DeliveryStatus.PENDING, reason=move.reason.value, due_at=move.due_at, route=move.route
            )
        rows.append(row)
    for number, new in enumerate(made.add, start=len(rows) + 1):
        rows.append(
            Told(
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
        )
    return rows


def sent(told: Sequence[Told], now: datetime) -> list[Told]:
    """Return the outbox after everything that is due was sent."""
    return [
        replace(row, status=DeliveryStatus.SENT, reason="delivered", ended_at=now, attempts=1)
        if row.status is DeliveryStatus.PENDING and row.due_at <= now
        else row
        for row in told
    ]


@given(cases, routings, silences, times)
def test_equal_inputs_give_equal_plans(
    case: Case, routing: Routing, silenced: Sequence[Silence], now: datetime
) -> None:
    made = [plan(case, Trigger.SEEN, routing=routing, told=(), now=now, silences=silenced) for _ in range(2)]

    assert made[0] == made[1]


@given(cases, routings, routings, silences, times)
def test_plan_made_twice_changes_nothing_the_second_time(
    case: Case, routing: Routing, edited: Routing, silenced: Sequence[Silence], now: datetime
) -> None:
    first = plan(replace(case, state=AttentionState.ACTIVE), Trigger.SEEN, routing=routing, told=(), now=START)
    told = sent(stored((), first), START)
    second = plan(case, Trigger.ASKED, routing=edited, told=told, now=now, silences=silenced)

    again = plan(case, Trigger.ASKED, routing=edited, told=stored(told, second), now=now, silences=silenced)

    assert (again.move, again.cancel) == ((), ())
    # What is over is settled by name, and the outbox keeps one row of a name.
    standing = {(row.destination, row.recipient, row.purpose) for row in stored(told, second)}
    assert {(row.destination, row.recipient, row.purpose) for row in again.add} <= standing


def test_escalation_of_an_opening_that_an_edit_planned_late_counts_from_that_opening() -> None:
    late = START + timedelta(minutes=1)
    escalate = (Escalation(timedelta(minutes=1), ("boss",)),)
    edited = Routing((Route(name="routes[0]", match=Match(), notify=("ops",), escalate=escalate),), TARGETS)
    case = replace(CASE, state=AttentionState.ACTIVE)

    made = plan(case, Trigger.ASKED, routing=edited, told=(), now=late)

    assert [(row.purpose, row.due_at) for row in made.add if row.purpose != "open"] == [
        ("escalation:1", late + timedelta(minutes=1))
    ]


@given(st.lists(st.tuples(routings, minutes), min_size=1, max_size=5), silences)
def test_no_message_is_ever_planned_twice_however_often_routes_are_edited(
    edits: Sequence[tuple[Routing, timedelta]], silenced: Sequence[Silence]
) -> None:
    told: list[Told] = []
    now = START
    for routing, later in edits:
        for trigger in (Trigger.ASKED, Trigger.TOLD):
            made = plan(CASE, trigger, routing=routing, told=told, now=now, silences=silenced)
            told = sent(stored(told, made), now)
        now += later

        keys = [(row.destination, row.recipient, row.purpose) for row in told]
        assert len(keys) == len(set(keys))


@given(routings, silences, times)
def test_nothing_is_due_while_it_is_quiet_or_silenced(
    routing: Routing, silenced: Sequence[Silence], now: datetime
) -> None:
    made = plan(CASE, Trigger.SEEN, routing=routing, told=(), now=now, silences=silenced)

    named = {one.name for one in routing.routes}
    (quiet, *others) = [one.quiet for one in routing.routes if one.match.accepts(SUBJECT)] or [None]
    for row in made.add:
        assert row.due_at >= now
        assert not any(row.due_at < silence.ends_at for silence in silenced)
        assert row.route in named
        if quiet is not None and not others:
            assert quiet.end_after(row.due_at) is None


@given(cases, routings, times)
def test_every_row_has_a_decision_that_names_its_route_and_reason(case: Case, routing: Routing, now: datetime) -> None:
    made = plan(case, Trigger.SEEN, routing=routing, told=(), now=now)

    decided = {(entry.destination, entry.recipient, entry.purpose): entry for entry in made.decisions}
    for row in made.add:
        entry = decided[row.destination, row.recipient, row.purpose]
        assert (entry.route, entry.reason) == (row.route, row.reason)
        assert entry.verdict in (Verdict.PLANNED, Verdict.POSTPONED)


def test_first_route_that_fits_decides_and_continue_lets_others_follow() -> None:
    night = Route("routes[0]", Match(kind=("manual_*",)), ("boss",))
    red = Route("routes[1]", Match(labels={"team": ("red", "blue")}), ("ops",), goes_on=True)
    rest = Route("routes[2]", Match(namespace=("pr*",)), ("ops", "mail"))
    never = Route("routes[3]", Match(), ("boss",))

    made = plan(CASE, Trigger.SEEN, routing=Routing((night, red, rest, never), TARGETS), told=(), now=START)

    assert [(row.destination, row.recipient, row.route) for row in made.add] == [
        ("ops", "ops", "routes[1]"),
        ("mail", "a@example.com", "routes[2]"),
        ("mail", "b@example.com", "routes[2]"),
    ]


def test_request_that_no_route_fits_and_one_for_nobody_are_suppressed_with_the_reason() -> None:
    nothing = plan(CASE, Trigger.SEEN, routing=Routing((), TARGETS), told=(), now=START)
    nobody = plan(CASE, Trigger.SEEN, routing=Routing((Route("routes[0]", Match(), ()),), TARGETS), told=(), now=START)

    assert [(entry.verdict, entry.reason, entry.route) for entry in nothing.decisions + nobody.decisions] == [
        (Verdict.SUPPRESSED, DecisionReason.NO_ROUTE, None),
        (Verdict.SUPPRESSED, DecisionReason.NOBODY_NAMED, "routes[0]"),
    ]


def test_step_put_in_front_does_not_escalate_again_to_who_was_told() -> None:
    before = Route("routes[0]", Match(), ("ops",), escalate=(Escalation(timedelta(hours=1), ("boss",)),))
    after = replace(
        before,
        escalate=(
            Escalation(timedelta(minutes=30), ("mail",)),
            Escalation(timedelta(hours=1), ("boss",)),
        ),
    )
    now = START + timedelta(hours=2)
    first = plan(CASE, Trigger.SEEN, routing=Routing((before,), TARGETS), told=(), now=START)

    made = plan(CASE, Trigger.ASKED, routing=Routing((after,), TARGETS), told=sent(stored((), first), now), now=now)

    assert {row.destination for row in made.add} == {"mail"}
