"""A delivering process killed with -9 at each of its steps: nothing is lost, and nobody is bothered twice.

A receiver that deduplicates sees the same id again at most; one that can be asked sees each message once; where
neither is possible a dead letter is left, never a blind repeat.
"""

import asyncio
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock, SystemClock
from config.steps import Step
from reconciler.states import AttentionState
from tests.support.delivering import Delivering
from tests.support.file_receiver import FileChannel, accepted, entries
from worker.channels.destination import Destination
from worker.channels.protocol import UnknownPolicy

ROOT = Path(__file__).parents[2]

VICTIM = """
import asyncio, sys
from pathlib import Path
from config.clock import SystemClock
from config.database import create_engine, database_url
from config.steps import Step, kill_at
from reconciler.states import AttentionState
from tests.support.delivering import Delivering
from tests.support.file_receiver import FileChannel
from worker.channels.destination import Destination
from worker.channels.protocol import UnknownPolicy

async def main(url, path, policy, step, state):
    database = create_engine(database_url(url, relative_to=Path.cwd()))
    destination = Destination("file", "file", FileChannel(Path(path), UnknownPolicy(policy)))
    house = Delivering(database, [destination], clock=SystemClock())
    house.source.default = AttentionState(state)
    await house.engine(on_step=kill_at(Step(step))).run_due()

asyncio.run(main(*sys.argv[1:]))
"""

STEPS = [Step.CLAIMED, Step.CONFIRMED, Step.SENT, Step.ATTEMPT_RECORDED]


async def killed_at(step: Step, url: str, path: Path, policy: UnknownPolicy, state: str = "active") -> None:
    """Let a process of its own deliver until it kills itself at `step`."""
    arguments = [url, str(path), policy.value, step.value, state]
    victim = subprocess.Popen([sys.executable, "-c", VICTIM, *arguments], cwd=ROOT)
    assert await asyncio.to_thread(victim.wait) == -signal.SIGKILL


def house_at(engine: AsyncEngine, path: Path, policy: UnknownPolicy, *, later: timedelta) -> Delivering:
    """Return the same outbox `later`, when the dead process' leases have lapsed."""
    clock = FrozenClock(datetime.now(UTC) + later)
    return Delivering(engine, [Destination("file", "file", FileChannel(path, policy))], clock=clock)


async def deliver_all(house: Delivering) -> None:
    worker = house.engine()
    await worker.run_due()
    await house.pass_time(worker, timedelta(minutes=1), timedelta(seconds=10))


@pytest.mark.parametrize("step", STEPS)
async def test_killed_at_any_step_a_deduplicating_receiver_has_one_opening(
    step: Step, any_database_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    path, policy = tmp_path / "received", UnknownPolicy.RESEND
    before = Delivering(engine, [Destination("file", "file", FileChannel(path, policy))], clock=SystemClock())
    await before.see("a")
    await killed_at(step, any_database_url, path, policy)

    house = house_at(engine, path, policy, later=timedelta(minutes=1))
    await deliver_all(house)
    await house.see("a", AttentionState.RESOLVED)
    await deliver_all(house)

    assert {row["status"] for row in await house.deliveries()} == {"sent"}
    opening, settle = await house.deliveries()
    assert set(accepted(path)) == {opening["message_key"], settle["message_key"]}
    assert accepted(path)[opening["message_key"]] == (2 if step is Step.SENT else 1)
    assert accepted(path)[settle["message_key"]] == 1
    tried = [(row["number"], row["outcome"]) for row in await house.attempts(delivery_id=opening["id"])]
    assert tried == ([(1, "unknown"), (2, "sent")] if step is Step.SENT else [(1, "sent")])


@pytest.mark.parametrize(
    ("policy", "status", "times"),
    [(UnknownPolicy.LOOK_UP, "sent", 1), (UnknownPolicy.RESEND_ONCE, "sent", 2), (UnknownPolicy.GIVE_UP, "dead", 1)],
)
async def test_killed_after_the_provider_answered_never_repeats_blindly(
    policy: UnknownPolicy, status: str, times: int, migrated_sqlite_url: str, sqlite_engine: AsyncEngine, tmp_path: Path
) -> None:
    path = tmp_path / "received"
    before = Delivering(sqlite_engine, [Destination("file", "file", FileChannel(path, policy))], clock=SystemClock())
    await before.see("a")
    await killed_at(Step.SENT, migrated_sqlite_url, path, policy)

    house = house_at(sqlite_engine, path, policy, later=timedelta(minutes=1))
    await deliver_all(house)

    row = await house.delivery()
    assert (row["status"], accepted(path)[row["message_key"]]) == (status, times)


@pytest.mark.parametrize("step", STEPS)
async def test_killed_between_the_state_change_and_the_edit_edits_once(
    step: Step, migrated_sqlite_url: str, sqlite_engine: AsyncEngine, tmp_path: Path
) -> None:
    path, policy = tmp_path / "received", UnknownPolicy.LOOK_UP
    before = Delivering(sqlite_engine, [Destination("file", "file", FileChannel(path, policy))], clock=SystemClock())
    await before.see("a")
    await before.engine().run_due()
    await before.see("a", AttentionState.RESOLVED)
    await killed_at(step, migrated_sqlite_url, path, policy, "resolved")

    await deliver_all(house_at(sqlite_engine, path, policy, later=timedelta(minutes=1)))

    assert [entry["purpose"] for entry in entries(path)] == ["open", "settle"]


async def test_lease_that_lapsed_is_not_sent_under_and_not_recorded(sqlite_engine: AsyncEngine, tmp_path: Path) -> None:
    """A worker stalls while it is sending; another one takes over; the first one's outcome is left aside.

    first:  claim, begin, send ............................... answered, refused by the fence
    second:            lease lapses, unknown, looked up, found
    """
    path, policy = tmp_path / "received", UnknownPolicy.LOOK_UP
    slow = FileChannel(path, policy)
    house = Delivering(sqlite_engine, [Destination("file", "file", slow)])
    stalled, resume = asyncio.Event(), asyncio.Event()
    send = slow.send

    async def stall(message, context):  # type: ignore[no-untyped-def]
        outcome = await send(message, context)
        stalled.set()
        await resume.wait()
        return outcome

    await house.see("a")
    slow.send = stall  # type: ignore[method-assign]
    first = asyncio.create_task(house.engine().run_due())
    await stalled.wait()
    slow.send = send  # type: ignore[method-assign]
    late = FrozenClock(house.clock.now() + timedelta(minutes=5))
    other = Delivering(sqlite_engine, house.destinations, clock=late)
    await deliver_all(other)
    resume.set()
    await first

    assert [entry["purpose"] for entry in entries(path)] == ["open"]
    assert [attempt["outcome"] for attempt in await other.attempts()] == ["unknown", "found"]
    assert (await other.delivery())["status"] == "sent"
