"""A process that is held up, by its machine or by a source that hangs, neither repeats nor stops what others do."""

import asyncio
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock
from reconciler.confirm import Confirmer
from reconciler.enrolled import EnrolledReader
from reconciler.references import Observation, Reference
from tests.support.delivering import NAMESPACE, START, Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of
from tests.support.scripted_source import ScriptedSource
from worker.channels.protocol import Message
from worker.delivery.limits import Limits


class HeldUpClock:
    """Tells the time of another clock; whoever sleeps on it wakes late, as in a process that got no CPU."""

    def __init__(self, clock: FrozenClock) -> None:
        self._clock = clock
        self.goes_on = asyncio.Event()
        self.slept = asyncio.Event()

    def now(self) -> datetime:
        """Return the other clock's instant."""
        return self._clock.now()

    async def sleep(self, duration: timedelta) -> None:
        """Return when the duration has passed and the process goes on."""
        if self.goes_on.is_set():
            self.slept.set()
        await self._clock.sleep(duration)
        await self.goes_on.wait()


async def test_message_that_another_took_over_is_not_sent_again(engine: AsyncEngine) -> None:
    """We begin a and b | we stand still | another takes both over and sends | we renew what is left, and go on."""
    hook = ScriptedChannel("hook")
    clock = FrozenClock(START)
    late = HeldUpClock(clock)
    ours = Delivering(engine, [destination_of(hook)], clock=late)
    others = Delivering(engine, [destination_of(hook)], clock=clock)
    sending, answer = asyncio.Event(), asyncio.Event()

    async def hang(_message: Message) -> None:
        hook.before_answer = None
        sending.set()
        await answer.wait()

    hook.before_answer = hang
    await ours.see("a")
    await ours.see("b")
    working = asyncio.create_task(ours.engine(limits=Limits(at_once=1)).run_due())
    await sending.wait()
    await others.pass_time(others.engine(), timedelta(minutes=2), timedelta(seconds=20))
    assert len(hook.sent) == 2

    late.goes_on.set()
    await late.slept.wait()  # for its next turn: it has renewed
    answer.set()
    await working

    assert sorted(hook.accepted.values()) == [1, 2]  # the first was on its way; the other is not sent again


class HangingSource(ScriptedSource):
    """Never answers."""

    async def observe(self, reference: Reference) -> Observation:
        """Hang."""
        self.asked[reference.attention_id] += 1
        await asyncio.Event().wait()
        raise AssertionError


async def test_source_that_hangs_is_waited_for_once_not_for_each_request(sqlite_engine: AsyncEngine) -> None:
    """Else the batch's lease would lapse first, and nothing in the batch, of other sources neither, would ever go."""
    house = Delivering(sqlite_engine, [destination_of(ScriptedChannel("hook"))])
    for number in range(20):
        await house.see(f"request-{number}")
    requests = await EnrolledReader(sqlite_engine, NAMESPACE).open_after(0, due_at=house.clock.now(), limit=50)
    source, bound = HangingSource(house.clock), timedelta(milliseconds=200)
    confirmer = Confirmer(house.clock, lambda _namespace: source, house.notifications, bound=bound)
    began = asyncio.get_running_loop().time()

    answers = await confirmer.confirm(requests)

    assert len(answers) == 20
    assert asyncio.get_running_loop().time() - began < 3 * bound.total_seconds()
