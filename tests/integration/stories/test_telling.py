"""Whole stories, as people would tell them: exactly these messages, at these times, and no others."""

from datetime import date, time, timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.quiet import Quiet
from reconciler.routes import Escalation, Match
from reconciler.states import AttentionState
from tests.support.stories import BERLIN, Story, route

HOUR = timedelta(hours=1)
NIGHT = Quiet(time(22), time(7), BERLIN)


async def test_approval_of_an_evening_is_answered_the_next_morning(engine: AsyncEngine) -> None:
    approvals = route(
        "ops",
        remind_every=timedelta(minutes=90),
        escalate=(Escalation(2 * HOUR, ("mail",)),),
        quiet=NIGHT,
    )
    story = Story(engine, [approvals], begins="18:55")

    await story.opens("a")
    await story.until("+1 07:10")
    await story.becomes("a", AttentionState.RESOLVED)
    await story.until("+2 12:00")

    assert story.said == [
        ("18:55", "ops", "open a"),
        ("20:25", "ops", "reminder:1 a"),
        ("20:55", "mail", "escalation:1 a"),
        ("21:55", "ops", "reminder:2 a"),
        ("+1 07:00", "ops", "reminder:3 a"),
        ("+1 07:00", "mail", "reminder:1 a"),
        ("+1 07:10", "ops", "settle -a"),
        ("+1 07:10", "mail", "settle -a"),
    ]


async def test_three_intervals_after_the_end_bring_no_reminder(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", remind_every=HOUR)])

    await story.opens("a")
    await story.until("10:00")
    await story.becomes("a", AttentionState.RESOLVED)
    await story.until("13:30")

    assert story.said == [
        ("09:00", "ops", "open a"),
        ("10:00", "ops", "reminder:1 a"),
        ("10:00", "ops", "settle -a"),
    ]


async def test_reminder_whose_request_settles_while_it_is_claimed_is_not_sent(engine: AsyncEngine) -> None:
    """Due at T+60, settled at T+59 and not heard of: the question before sending finds it."""
    story = Story(engine, [route("ops", remind_every=HOUR)])

    await story.opens("a")
    await story.until("09:59")
    story.house.source.states["a"] = AttentionState.CANCELLED
    await story.until("12:00")

    assert story.said == [("09:00", "ops", "open a"), ("10:00", "ops", "settle -a")]
    assert ("cancelled", "settled_before_sending", "reminder:1", "routes[0]") in await story.reasons("a")


async def test_reminders_end_with_their_number_and_say_so(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", remind_every=HOUR, remind_at_most=2)])

    await story.opens("a")
    await story.until("18:00")

    assert [what for _, _, what in story.said] == ["open a", "reminder:1 a", "reminder:2 a"]
    assert await story.reasons("a") == [
        ("planned", "routed", "open", "routes[0]"),
        ("planned", "reminded", "reminder:1", "routes[0]"),
        ("planned", "reminded", "reminder:2", "routes[0]"),
        ("suppressed", "reminded_enough", None, "routes[0]"),
    ]


async def test_acknowledged_and_forgotten_comes_back_after_the_pause(engine: AsyncEngine) -> None:
    insistent = route(
        "ops", remind_every=timedelta(minutes=30), escalate=(Escalation(timedelta(minutes=45), ("mail",)),)
    )
    story = Story(engine, [insistent])

    await story.opens("a")
    await story.until("09:10")
    await story.acknowledges("a", HOUR)
    await story.until("10:45")

    assert story.said == [
        ("09:00", "ops", "open a"),
        ("10:10", "ops", "reminder:1 a"),
        ("10:10", "mail", "escalation:1 a"),
        ("10:40", "ops", "reminder:2 a"),
        ("10:40", "mail", "reminder:1 a"),
    ]
    assert ("postponed", "acknowledged", "escalation:1", "routes[0]") in await story.reasons("a")


async def test_next_destination_is_told_only_where_the_request_still_waits(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", "mail", stagger=timedelta(minutes=10))])

    await story.opens("a", "b")
    await story.until("09:05")
    await story.becomes("b", AttentionState.RESOLVED)
    await story.until("10:00")

    assert story.said == [
        ("09:00", "ops", "open a"),
        ("09:00", "ops", "open b"),
        ("09:05", "ops", "settle -b"),
        ("09:10", "mail", "open a"),
    ]


async def test_eight_hours_down_with_an_hourly_reminder_bring_one(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", remind_every=HOUR)])

    await story.opens("a")
    await story.until("17:00", working=False)
    await story.until("18:30")

    assert story.said == [
        ("09:00", "ops", "open a"),
        ("17:00", "ops", "reminder:1 a"),
        ("18:00", "ops", "reminder:2 a"),
    ]


@pytest.mark.parametrize("day", [date(2026, 7, 1), date(2026, 3, 8), date(2026, 11, 1)], ids=str)
async def test_quiet_hours_hold_exactly_inside_also_on_the_days_of_the_change(
    sqlite_engine: AsyncEngine, day: date
) -> None:
    evening = Quiet(time(19), time(23), "America/New_York", except_kinds=("manual_*",))
    story = Story(sqlite_engine, [route("ops", quiet=evening)], begins="18:59", day=day, zone="America/New_York")

    await story.opens("before")
    await story.until("19:00")
    await story.opens("first")
    await story.until("22:59")
    await story.opens("last", "gone")
    await story.becomes("gone", AttentionState.RESOLVED)
    await story.until("+1 12:00")

    assert story.said == [
        ("18:59", "ops", "open before"),
        ("23:00", "ops", "open first"),
        ("23:00", "ops", "open last"),
    ]
    assert ("postponed", "quiet_hours", "open", "routes[0]") in await story.reasons("first")


async def test_edited_routes_hold_and_nothing_doubles(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", remind_every=HOUR, escalate=(Escalation(3 * HOUR, ("mail",)),))])
    await story.opens("a", "b", "c")
    await story.until("09:30")

    await story.edits(route("ops", remind_every=timedelta(minutes=20), escalate=(Escalation(2 * HOUR, ("mail",)),)))
    await story.until("09:55")
    await story.edits(route("ops"))
    await story.edits(route("ops"))
    await story.until("20:00")

    for name in "abc":
        assert [entry for entry in story.said if entry[2].endswith(name)] == [
            ("09:00", "ops", f"open {name}"),
            ("09:30", "ops", f"reminder:1 {name}"),
            ("09:50", "ops", f"reminder:2 {name}"),
        ]
    assert ("cancelled", "route_changed", "escalation:1", "routes[0]") in await story.reasons("a")


async def test_routes_edited_there_and_back_tell_each_message_once(engine: AsyncEngine) -> None:
    escalating = route("ops", escalate=(Escalation(HOUR, ("mail",)),))
    story = Story(engine, [escalating])
    await story.opens("a")

    await story.edits(route("ops", "mail"))
    await story.edits(escalating)
    await story.until("12:00")

    assert story.said == [
        ("09:00", "ops", "open a"),
        ("09:00", "mail", "open a"),
        ("10:00", "mail", "escalation:1 a"),
    ]


async def test_unavailable_for_an_hour_freezes_and_then_goes_on_where_it_was(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", remind_every=HOUR, escalate=(Escalation(2 * HOUR, ("mail",)),))])

    await story.opens("a")
    await story.until("09:30")
    await story.becomes("a", AttentionState.UNAVAILABLE)
    await story.until("10:30")
    await story.becomes("a", AttentionState.ACTIVE)
    await story.until("12:10")

    assert story.said == [
        ("09:00", "ops", "open a"),
        ("11:00", "ops", "reminder:1 a"),
        ("12:00", "ops", "reminder:2 a"),
        ("12:00", "mail", "escalation:1 a"),
    ]


async def test_outage_that_is_first_noticed_by_a_reminder_holds_it_until_its_end(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", remind_every=HOUR)])

    await story.opens("a")
    story.house.source.states["a"] = AttentionState.UNAVAILABLE
    await story.until("10:59")
    assert story.said == [("09:00", "ops", "open a")]

    await story.becomes("a", AttentionState.ACTIVE)
    await story.until("11:30")

    assert story.said[1:] == [("10:59", "ops", "reminder:1 a")]


async def test_overdue_approval_is_active_and_reminded(engine: AsyncEngine) -> None:
    """The runtime has not committed the expiry: only it may say that the request is over."""
    story = Story(engine, [route("ops", remind_every=8 * HOUR)])

    await story.opens("a")
    await story.until("+1 02:00")

    assert [what for _, _, what in story.said] == ["open a", "reminder:1 a", "reminder:2 a"]


async def test_dismissed_request_is_not_told_of_until_that_is_undone(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", remind_every=HOUR, escalate=(Escalation(2 * HOUR, ("mail",)),))])

    await story.opens("a")
    await story.until("09:30")
    await story.dismisses("a")
    await story.until("15:00")
    await story.undoes("a")
    await story.until("15:30")
    await story.dismisses("a")
    await story.until("20:00")
    await story.becomes("a", AttentionState.RESOLVED)

    assert story.said == [
        ("09:00", "ops", "open a"),
        ("15:00", "ops", "reminder:1 a"),
        ("15:00", "mail", "escalation:1 a"),
        ("20:00", "ops", "settle -a"),
        ("20:00", "mail", "settle -a"),
    ]
    assert ("cancelled", "dismissed", "escalation:1", "routes[0]") in await story.reasons("a")


async def test_silence_holds_what_matches_until_it_ends_or_is_ended(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", remind_every=HOUR)])
    await story.opens("a")

    await story.silences(Match(agent=("shipping",)), 4 * HOUR)
    number = await story.silences(Match(agent=("bill*",)), 4 * HOUR)
    await story.until("11:00")
    await story.opens("b")
    await story.until("11:30")
    await story.ends_silence(number)
    await story.until("11:45")

    assert story.said == [
        ("09:00", "ops", "open a"),
        ("11:30", "ops", "reminder:1 a"),
        ("11:30", "ops", "open b"),
    ]
    assert ("postponed", "silenced", "open", "routes[0]") in await story.reasons("b")


async def test_broken_destination_is_reminded_where_its_fallback_told(engine: AsyncEngine) -> None:
    from worker.channels.outcomes import FailureReason, Permanent

    story = Story(engine, [route("ops", remind_every=HOUR)], fallback={"ops": ("mail",)})
    story.channels["ops"].script = [Permanent(FailureReason.UNAUTHORIZED)] * 40

    await story.opens("a")
    await story.until("10:30")

    assert story.said == [("09:00", "mail", "open a"), ("10:00", "mail", "reminder:1 a")]


async def test_message_says_why_its_reader_is_told_where_the_route_explains(sqlite_engine: AsyncEngine) -> None:
    explaining = route("ops", remind_every=HOUR, escalate=(Escalation(2 * HOUR, ("mail",)),), explains=True)
    story = Story(sqlite_engine, [explaining])

    await story.opens("a")
    await story.until("11:00")
    await story.becomes("a", AttentionState.RESOLVED)

    assert [(message.purpose, message.footer) for message, _ in story.channels["ops"].sent] == [
        ("open", "You are told because routes[0] names ops."),
        ("reminder:1", "You are told because nobody has answered since the last message (routes[0])."),
        ("reminder:2", "You are told because nobody has answered since the last message (routes[0])."),
        ("settle", None),
    ]
    assert [message.footer for message, _ in story.channels["mail"].sent] == [
        "You are told because nobody has answered for a while (routes[0], step 1).",
        None,
    ]
