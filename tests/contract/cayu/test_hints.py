"""What an event of a real run does: it rings, and the runtime's present view decides."""

import asyncio
from typing import Any

import pytest
from cayu.events import Event
from cayu.observability import EventSink

from config.steps import Step
from reconciler.reasons import Door
from reconciler.refresh import Refresher
from reconciler.sweep import Mode
from sinks.emit.hint import Hint
from sinks.inbox_sink import InboxSink
from tests.contract.cayu.conftest import Case
from tests.support.cayu_ends import enroll
from tests.support.paging_source import BEGINNING
from tests.support.reconciling import NAMESPACE
from tests.support.sources import KnownIds
from worker.scripted.runtime import make_app, pause
from worker.scripted.settling import current_action, settle


class RefreshesAtOnce(EventSink):
    """Commits hints as Handbell's own sink does, and refreshes after each: the shortest way there can be."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._sink = InboxSink(case.reconciling.inbox, namespace=NAMESPACE)
        self.seen: dict[str, set[str]] = {}

    async def emit(self, event: Event) -> None:
        """Remember which sessions had a notification after the event."""
        await self._sink.emit(event)
        await self._case.reconciling.refresher.round()
        self.seen.setdefault(str(event.type), set(await self._case.sessions()))


async def test_early_event_invents_nothing_and_both_lead_to_one_notification(own: Case) -> None:
    sink = RefreshesAtOnce(own)
    async with own.store.runtime() as (store, _app):
        await pause(make_app(store, sinks=[sink]), "user_input", "new")
        [action] = [action for action in await own.store.actions() if action.session.id == "new"]

        states = await own.reconciling.states()
        await settle(make_app(store, sinks=[sink]), await current_action(store, "new"), "answer")

    assert "new" not in sink.seen["session.awaiting_user_input"]
    assert sink.seen["session.interrupted"] == {"new"}
    assert states == {action.attention_id: "active"}
    assert [row[2] for row in await own.reconciling.deliveries() if row[0] == "ops"] == ["open"]
    assert (await own.sessions())["new"] == "resolved"
    assert "new" in sink.seen["session.resumed"]


async def test_resumed_event_settles_nothing_by_itself(paused: Case) -> None:
    await paused.reconciling.hint("ask", "e1")
    await paused.reconciling.refresher.round()

    await paused.reconciling.hint("ask", "e2", "session.resumed")
    await paused.reconciling.refresher.round()

    assert await paused.sessions() == {"ask": "active"}


async def test_late_opening_event_of_a_settled_question_recreates_nothing(own: Case) -> None:
    await own.reconciling.hint("ask", "e1")
    await own.reconciling.refresher.round()
    await own.store.settle("ask", "answer")
    await own.reconciling.hint("ask", "e2", "session.completed")
    await own.reconciling.refresher.round()
    before = (await own.reconciling.deliveries(), await own.reconciling.history())

    for number, event_type in enumerate(["session.awaiting_user_input", "session.interrupted"]):
        await own.reconciling.hint("ask", f"late-{number}", event_type)
        await own.reconciling.refresher.round()

    assert await own.sessions() == {"ask": "resolved"}
    assert (await own.reconciling.deliveries(), await own.reconciling.history()) == before


async def test_missed_events_are_made_up_for_by_a_pass(own: Case) -> None:
    async with own.store.runtime() as (_store, app):
        await pause(app, "user_input", "unheard")

    await own.reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)

    assert (await own.sessions())["unheard"] == "active"
    assert (await own.reconciling.inbox.counts()).received == 0


async def test_consumers_at_once_leave_one_notification(paused: Case) -> None:
    await paused.reconciling.inbox.insert(
        [Hint(NAMESPACE, "ask", f"e{number}", "session.interrupted", BEGINNING) for number in range(5)]
    )

    await asyncio.gather(*(paused.reconciling.refresher.round() for _ in range(4)))

    assert await paused.sessions() == {"ask": "active"}
    assert len([row for row in await paused.reconciling.deliveries() if row[0] == "ops"]) == 1


async def test_consumer_that_ends_after_the_insert_is_repeated_by_another(paused: Case) -> None:
    class ConsumerEndsError(Exception):
        pass

    def end(step: Step) -> None:
        if step is Step.APPLIED:
            raise ConsumerEndsError

    reconciling = paused.reconciling
    parts: Any = (reconciling.inbox, reconciling.book, reconciling.namespaces)
    ending = Refresher(
        reconciling.engine,
        reconciling.clock,
        *parts,
        type(reconciling.notifications)(
            reconciling.engine, reconciling.clock, reconciling.notifications._routing, on_step=end
        ),
    )
    await reconciling.hint("ask", "e1")

    with pytest.raises(ConsumerEndsError):
        await ending.round()
    unprocessed = (await reconciling.inbox.counts()).unprocessed
    await reconciling.refresher.round()

    assert unprocessed == 1
    assert await paused.sessions() == {"ask": "active"}
    assert len([row for row in await reconciling.deliveries() if row[0] == "ops"]) == 1
    assert (await reconciling.inbox.counts()).unprocessed == 0


async def test_failing_notification_leaves_the_pause_as_it_is(paused: Case) -> None:
    reconciling = paused.reconciling

    def nobody() -> Any:
        raise RuntimeError("the routes are gone")

    reconciling.notifications._routing = nobody
    before = [action.attention_id for action in await paused.store.actions()]
    await reconciling.hint("ask", "e1")

    with pytest.raises(RuntimeError, match="routes"):
        await reconciling.refresher.round()

    assert [action.attention_id for action in await paused.store.actions()] == before
    assert (await reconciling.inbox.counts()).unprocessed == 1
    assert await paused.sessions() == {}


async def test_stale_consumer_cannot_reopen_what_another_settled(own: Case) -> None:
    """One consumer read the view before the answer and applies it after the other has settled the request."""
    view = await own.source.session("ask", known=KnownIds())
    references = {"ask": view.active[0].reference}
    await enroll(own.reconciling, references)
    await own.store.settle("ask", "answer")
    await own.reconciling.hint("ask", "e1", "session.completed")
    await own.reconciling.refresher.round()

    await own.reconciling.notifications.apply(NAMESPACE, view.active, door=Door.HINT)

    assert await own.sessions() == {"ask": "resolved"}
