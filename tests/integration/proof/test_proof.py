"""The guide's runnable proof: docs/proof.md is run as it stands, each command in a process of its own."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import SystemClock
from sinks.inbox import Inbox
from sinks.inbox_sink import InboxSink
from tests.support.databases import engine_for
from tests.support.forking_door import ROOT
from tests.support.product import Product, Run
from worker.scripted.runtime import CONTENT_MARK, close_store, make_app, open_store

PAGE = ROOT / "docs" / "proof.md"
ANYTHING = "…"


@dataclass
class Command:
    """One command of the page and what must come of it."""

    arguments: list[str]
    output: list[str] = field(default_factory=list)
    code: int = 0


def sections() -> Iterator[tuple[str, list[Command]]]:
    for section in PAGE.read_text("utf-8").split("\n## ")[1:]:
        title = section.splitlines()[0]
        for block in re.findall(r"```console\n(.*?)```", section, flags=re.DOTALL):
            yield title, list(commands(block))


def commands(block: str) -> Iterator[Command]:
    command: Command | None = None
    for line in block.splitlines():
        if line.startswith("$ handbell "):
            if command is not None:
                yield command
            command = Command(line.removeprefix("$ handbell ").split())
        elif exit_code := re.fullmatch(r"\[exit (\d+)\]", line):
            assert command is not None
            command.code = int(exit_code[1])
        else:
            assert command is not None
            command.output.append(line)
    assert command is not None, block
    yield command


SECTIONS = list(sections())


@pytest.fixture
def proof(product: Product, tmp_path: Path) -> "Proof":
    return Proof(product, tmp_path / "proof")


@dataclass
class Proof:
    """Starts the proof's commands on one folder."""

    product: Product
    folder: Path

    async def do(self, *arguments: str) -> Run:
        run = await self.product.do("proof", *arguments, str(self.folder))
        assert "Traceback" not in run.stderr
        return run

    async def notifications(self) -> list[dict[str, str]]:
        run = await self.do("inspect")
        assert run.code == 0, run.stderr
        return [json.loads(line) for line in run.stdout.splitlines()]

    def count(self, table: str) -> int:
        with sqlite3.connect(self.folder / "handbell.db") as connection:
            [number] = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(number)


@pytest.mark.parametrize("commands", [pytest.param(commands, id=title) for title, commands in SECTIONS])
async def test_page_is_true(proof: Proof, commands: list[Command]) -> None:
    for command in commands:
        arguments = [str(proof.folder) if argument == "$DIR" else argument for argument in command.arguments]

        run = await proof.product.do(*arguments)

        said = run.stderr if command.code == 2 else run.stdout
        assert run.code == command.code, (command.arguments, run.stderr)
        assert fits(said, command.output), (command.arguments, said)
        assert CONTENT_MARK not in run.stdout + run.stderr


def fits(said: str, wanted: list[str]) -> bool:
    pattern = re.escape("\n".join(wanted)).replace(re.escape(ANYTHING), ".+" if wanted == [ANYTHING] else "[^\n]+")
    return re.fullmatch(pattern, said.strip(), flags=re.DOTALL) is not None


async def test_consumers_at_once_leave_one_notification_and_a_dead_one_holds_up_nobody(proof: Proof) -> None:
    await proof.do("pause", "--kind", "manual_recovery", "--crash-before-delivery")
    died = await proof.do("consume", "--crash-after-accept")

    runs = [proof.product.start("proof", "consume", str(proof.folder)) for _ in range(3)]
    codes = await asyncio.gather(*(run.ended() for run in runs))

    assert (died.code, codes) == (18, [0, 0, 0])
    [shown] = await proof.notifications()
    assert set(shown) == {"attention_id", "kind", "summary", "state"}
    assert (proof.count("notifications"), proof.count("notification_history")) == (1, 1)


async def test_crashed_producers_lease_lives_while_the_request_is_found(proof: Proof) -> None:
    crashed = await proof.do("pause", "--crash-before-delivery")

    consumed = await proof.do("consume")

    store = open_store(str(proof.folder / "cayu.db"), read_only=True)
    health = await store.get_persisted_event_side_effect_health()
    await close_store(store)
    assert (crashed.code, consumed.code, health.leased_live) == (17, 0, 1)
    assert health.earliest_live_lease_expires_at > datetime.now(UTC)
    assert [row["state"] for row in await proof.notifications()] == ["active"]


async def test_hints_whose_acknowledgement_was_lost_are_sent_again_and_are_one_row_each(proof: Proof) -> None:
    await proof.do("pause", "--fail-after-accept")
    await proof.do("consume")
    received = proof.count("inbox")
    later = datetime.now(UTC) + timedelta(minutes=1)  # the runtime's retry deadline is past
    store = open_store(str(proof.folder / "cayu.db"), ownership_clock=lambda: later)
    engine: AsyncEngine = engine_for(f"sqlite:///{proof.folder / 'handbell.db'}")
    app = make_app(store, sinks=[InboxSink(Inbox(engine, SystemClock()), namespace="proof")])

    recovered = await app.recover_persisted_event_side_effects(limit=100)
    health = await app.get_persisted_event_side_effect_health()

    await engine.dispose()
    await close_store(store)
    assert len(recovered) == received > 0
    assert (proof.count("inbox"), health.outstanding_total) == (received, 0)


@pytest.mark.parametrize("what", ["a file", "other files", "an empty folder"])
async def test_folder_that_is_no_proof_is_one_line(proof: Proof, what: str) -> None:
    if what == "a file":
        proof.folder.touch()
    else:
        proof.folder.mkdir()
    if what == "other files":
        (proof.folder / "cayu.db").write_text("something else")
        (proof.folder / "handbell.db").write_text("something else")

    for arguments in (["consume"], ["inspect"], ["late-hint"], ["recover"]):
        run = await proof.do(*arguments)
        assert run.code == 2, arguments
        assert str(proof.folder) in run.problem()
