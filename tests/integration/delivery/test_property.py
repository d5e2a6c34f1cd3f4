"""Whatever providers answer, however often the process dies: no blind repeat, right order, and every delivery ends."""

import asyncio
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.steps import Step
from reconciler.states import AttentionState
from tests.support.databases import engine_for
from tests.support.delivering import Delivering
from tests.support.scripted_channel import ScriptedChannel, destination_of
from worker.channels.outcomes import FailureReason, Outcome, Permanent, Sent, Temporary, Unknown
from worker.channels.protocol import Message, SendContext, UnknownPolicy
from worker.delivery.limits import Limits

DOWN = Temporary(FailureReason.SERVER_ERROR)
ANSWERS = {
    "sent": Sent("ref"),
    "down": DOWN,
    "limited": Temporary(FailureReason.RATE_LIMITED, timedelta(seconds=30)),
    "refused": Permanent(FailureReason.REJECTED),
    "lost, arrived": Unknown(FailureReason.TIMED_OUT),
    "lost": Unknown(FailureReason.CONNECTION_LOST),
    "bug": ValueError("bug"),
}
MOST_OPENINGS = {
    UnknownPolicy.LOOK_UP: 1,
    UnknownPolicy.GIVE_UP: 1,
    UnknownPolicy.RESEND_ONCE: 2,
    UnknownPolicy.RESEND: 1_000,
}


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Receiver(ScriptedChannel):
    """Answers by name, and remembers what it really has: a look-up is answered with the truth, or not at all."""

    answers: list[str] = field(default_factory=list)
    has: list[str] = field(default_factory=list)

    async def send(self, message: Message, context: SendContext) -> Outcome:
        name = self.answers.pop(0) if self.answers else "sent"
        if name in ("sent", "lost, arrived"):
            self.has.append(f"{message.purpose}:{message.key}")
        answer = ANSWERS[name]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def find(self, message: Message, context: SendContext) -> Outcome | None:
        if self.answers and self.answers.pop(0) != "sent":
            return DOWN
        return Sent("ref") if f"{message.purpose}:{message.key}" in self.has else None


@dataclass
class Killer:
    """Ends the run at the n-th step, as kill -9 would."""

    countdown: int

    def __call__(self, _step: Step) -> None:
        self.countdown -= 1
        if self.countdown == 0:
            raise Killed


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    policy=st.sampled_from(UnknownPolicy),
    answers=st.lists(st.sampled_from(sorted(ANSWERS)), max_size=8),
    kills=st.lists(st.integers(min_value=1, max_value=9), max_size=3),
    settles_after=st.integers(min_value=0, max_value=5),
)
def test_no_blind_repeat_right_order_and_every_delivery_ends(
    migrated_sqlite_file: Path, policy: UnknownPolicy, answers: list[str], kills: list[int], settles_after: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = shutil.copy(migrated_sqlite_file, Path(folder) / "handbell.db")
        receiver = Receiver("hook", answers=answers, on_unknown=policy)
        asyncio.run(_story(f"sqlite:///{file}", receiver, kills, settles_after))

    openings = [entry for entry in receiver.has if entry.startswith("open")]
    settles = [entry for entry in receiver.has if entry.startswith("settle")]
    assert len(openings) <= MOST_OPENINGS[policy]
    assert len(set(openings)) <= 1
    assert len(set(settles)) <= 1
    assert len(settles) <= MOST_OPENINGS[policy]
    assert receiver.has == openings + settles


async def _story(url: str, receiver: Receiver, kills: list[int], settles_after: int) -> None:
    database = engine_for(url)
    house = Delivering(database, [destination_of(receiver)])
    limits = Limits(permanent_limit=100)
    await house.see("a")
    for turn in range(12):
        if turn == settles_after:
            await house.see("a", AttentionState.RESOLVED)
        killer = Killer(kills.pop(0) if kills else 0)
        with suppress(Killed):
            await house.engine(limits=limits, on_step=killer).run_due()
        await house.clock.advance(timedelta(seconds=40))
    for _ in range(30):
        await house.engine(limits=limits).run_due()
        await house.clock.advance(timedelta(minutes=10))
    statuses = {row["status"] for row in await house.deliveries()}
    await database.dispose()
    assert statuses <= {"sent", "dead", "cancelled"}
