"""Stories of messages that tell of several requests: one message, true to each of them to its end."""

from datetime import time, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from reconciler.plan.gathering import DIGEST_AT_MOST
from reconciler.quiet import Quiet
from reconciler.routes import Match, Subject
from reconciler.simulating import Event, Line, Simulation
from reconciler.states import AttentionState, Kind
from tests.support.stories import BERLIN, Story, route
from worker.channels.outcomes import FailureReason, Permanent, Sent, Temporary, Unknown
from worker.channels.protocol import UnknownPolicy

HOUR = timedelta(hours=1)
TEN_MINUTES = timedelta(minutes=10)


async def test_two_pauses_in_one_second_are_one_message_that_is_edited_as_each_settles(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", digest_window=TEN_MINUTES)])

    await story.opens("a", "b")
    await story.until("09:30")
    await story.becomes("b", AttentionState.RESOLVED)
    await story.until("09:40")
    await story.becomes("a", AttentionState.CANCELLED)

    assert story.said == [
        ("09:10", "ops", "digest:1 a b"),
        ("09:30", "ops", "settle a -b"),
        ("09:40", "ops", "settle -a -b"),
    ]
    (digest, _), (edit, context), _ = story.channels["ops"].sent
    assert [(sent.key, sent.provider_ref) for sent in context.sent_before] == [(digest.key, f"ref-{digest.key}")]
    assert edit.key != digest.key
    assert {row["provider_ref"] for row in await story.house.deliveries(purpose="open")} == {f"ref-{digest.key}"}
    assert ("planned", "gathered", "open", "routes[0]") in await story.reasons("b")


async def test_requests_join_while_the_window_is_open_and_settled_ones_leave_before_it_closes(
    engine: AsyncEngine,
) -> None:
    """The first of them, which leads, is over before the message goes."""
    story = Story(engine, [route("ops", digest_window=TEN_MINUTES)])

    await story.opens("a")
    await story.until("09:05")
    await story.opens("b", "c")
    await story.becomes("a", AttentionState.RESOLVED)
    await story.until("09:08")
    story.house.source.states["c"] = AttentionState.RESOLVED
    await story.opens("d")
    await story.until("09:11")
    await story.opens("e")
    await story.until("10:00")

    assert story.said == [("09:10", "ops", "digest:1 b d"), ("09:21", "ops", "open e")]


async def test_member_whose_source_cannot_say_leaves_the_digest_and_is_told_later(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", digest_window=TEN_MINUTES)])

    await story.opens("a", "b", "c")
    story.house.source.states["a"] = AttentionState.UNAVAILABLE
    await story.until("09:20")
    story.house.source.states["a"] = AttentionState.ACTIVE
    await story.until("09:40")

    (first, second) = story.said
    assert first == ("09:10", "ops", "digest:1 b c")
    assert second[1:] == ("ops", "open a")
    keys = [message.key for message, _ in story.channels["ops"].sent]
    assert len(set(keys)) == 2


async def test_temporary_failure_of_a_digest_is_tried_again_as_one_under_the_same_name(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", digest_window=TEN_MINUTES)])
    story.channels["ops"].script = [Temporary(FailureReason.SERVER_ERROR)]

    await story.opens("a", "b", "c")
    await story.until("09:10")
    await story.becomes("a", AttentionState.RESOLVED)
    await story.until("09:30")

    assert [what for _, _, what in story.said] == ["digest:1 b c"]
    assert len({message.key for message, _ in story.channels["ops"].tries}) == 1
    assert {row["status"] for row in await story.house.deliveries()} == {"sent", "cancelled"}


async def test_unknown_outcome_of_a_digest_is_looked_up_once_for_all(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", digest_window=TEN_MINUTES)])
    channel = story.channels["ops"]
    channel.on_unknown = UnknownPolicy.LOOK_UP
    channel.script = [Unknown(FailureReason.TIMED_OUT)]
    channel.found = [Sent("found")]

    await story.opens("a", "b")
    await story.until("09:30")

    assert (len(channel.tries), channel.lookups) == (1, 1)
    assert [(row["status"], row["provider_ref"]) for row in await story.house.deliveries()] == [("sent", "found")] * 2


async def test_refused_digest_is_told_by_the_fallback_request_by_request(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", digest_window=TEN_MINUTES)], fallback={"ops": ("mail",)})
    story.channels["ops"].script = [Permanent(FailureReason.REJECTED)]

    await story.opens("a", "b")
    await story.until("09:30")

    assert sorted(what for _, where, what in story.said if where == "mail") == ["open a", "open b"]
    assert (await story.house.destination("ops"))["permanent_failures"] == 1
    assert {row["carrier_id"] for row in await story.house.deliveries(status="dead")} == {None}


async def test_reminders_of_a_digest_are_a_digest(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", digest_window=TEN_MINUTES, remind_every=HOUR)])

    await story.opens("a", "b")
    await story.until("10:30")
    await story.becomes("a", AttentionState.RESOLVED)
    await story.until("11:30")

    assert story.said == [
        ("09:10", "ops", "digest:1 a b"),
        ("10:10", "ops", "digest:2 a b"),
        ("10:30", "ops", "settle b -a"),
        ("11:10", "ops", "reminder:2 b"),
    ]


async def test_what_quiet_hours_and_silences_held_goes_in_one_message(engine: AsyncEngine) -> None:
    night = Quiet(time(22), time(7), BERLIN)
    story = Story(engine, [route("ops", digest_window=TEN_MINUTES, quiet=night)], begins="23:00")

    await story.opens("a")
    await story.until("+1 03:00")
    await story.opens("b")
    await story.until("+1 07:00")
    number = await story.silences(Match(), 4 * HOUR)
    await story.opens("c")
    await story.until("+1 08:00")
    await story.opens("d")
    await story.ends_silence(number)
    await story.until("+1 09:00")

    assert story.said == [
        ("+1 07:00", "ops", "digest:1 a b"),
        ("+1 08:00", "ops", "open c"),
        ("+1 08:10", "ops", "open d"),
    ]


async def test_storm_switches_a_destination_to_digests_and_its_end_switches_back(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", storm_limit=3)])

    await story.opens(*"abcdef")
    await story.until("09:10")
    await story.opens("g")

    assert story.said == [
        ("09:00", "ops", "open a"),
        ("09:00", "ops", "open b"),
        ("09:00", "ops", "open c"),
        ("09:01", "ops", "digest:1 d e f"),
        ("09:10", "ops", "open g"),
    ]
    assert ("postponed", "storm", "open", "routes[0]") in await story.reasons("f")


async def test_digest_is_bounded(sqlite_engine: AsyncEngine) -> None:
    story = Story(sqlite_engine, [route("ops", digest_window=TEN_MINUTES)])
    count = DIGEST_AT_MOST + 1

    for number in range(count):
        await story.house.see(f"r{number:03}")
    await story.until("09:10")

    assert [len(message.items) for message, _ in story.channels["ops"].sent] == [DIGEST_AT_MOST, 1]


async def test_edited_routes_take_a_digest_apart(engine: AsyncEngine) -> None:
    story = Story(engine, [route("ops", digest_window=TEN_MINUTES)])

    await story.opens("a", "b", "c")
    await story.until("09:05")
    await story.edits(route("ops"))

    assert story.said == [("09:05", "ops", f"open {name}") for name in "abc"]


async def test_simulation_says_what_really_happens(sqlite_engine: AsyncEngine) -> None:
    """The same routes and the same events, once through the product and once through `handbell simulate`."""
    night = Quiet(time(22), time(7), BERLIN)
    desk = route("ops", "mail", digest_window=TEN_MINUTES, remind_every=HOUR, stagger=TEN_MINUTES, quiet=night)
    story = Story(sqlite_engine, [desk], begins="20:00")
    events = [
        ("20:00", "a", AttentionState.ACTIVE),
        ("20:04", "b", AttentionState.ACTIVE),
        ("20:40", "a", AttentionState.UNAVAILABLE),
        ("21:00", "a", AttentionState.ACTIVE),
        ("21:45", "c", AttentionState.ACTIVE),
        ("21:58", "b", AttentionState.RESOLVED),
        ("23:00", "d", AttentionState.ACTIVE),
        ("+1 09:05", "a", AttentionState.CANCELLED),
    ]

    for at, name, state in events:
        await story.until(at)
        await story.becomes(name, state)
    await story.until("+1 09:30")

    subject = Subject("prod", Kind.TOOL_APPROVAL, "billing", None, {})
    played = Simulation(story.house.routing).play(
        [Event(story.at(at), name, subject, state) for at, name, state in events], story.at("+1 09:30")
    )
    simulated = [
        (story.local(line.at), line.destination, " ".join([line.purpose or "", *line.attention_ids, *minus(line)]))
        for line in played
        if line.what == "told"
    ]
    assert sorted(simulated) == sorted(story.said)


def minus(line: Line) -> list[str]:
    return [f"-{name}" for name in line.settled_ids]
