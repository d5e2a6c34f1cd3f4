"""The demo of paused runs: one process pauses and ends, a person is told, another process resumes with the token.

Everything is real and on this machine: signed tokens, their ledger in SQLite, the capture through Handbell's web role,
an embedded Valkey. What is shown at the end is read back from the databases.
"""

import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sqlalchemy import func, select

from config.clock import SystemClock
from config.database import READ_ONLY
from config.loading import Configuration
from config.settings import ChannelSettings, Settings, SourceSettings, WebSettings
from reconciler.pause_store.tables import CAPTURES
from worker.demo.child import PAUSES_AGENT, running_agent
from worker.demo.evidence import Shown, read_evidence, settled_and_told, told_of_all
from worker.demo.running import Progress, handbell
from worker.roles import Running
from worker.scripted.pausing import PausingRuntime, Places

NAMESPACE = "demo"
SESSION = "demo-paused-run"


@dataclass(frozen=True, slots=True)
class Played:
    """What the demo did and found: what the run said after the answer, and what became of a second redemption.

    The last two count the tokens that Handbell held while the run waited, and after.
    """

    shown: Shown
    said: str
    refused: str
    tokens_captured: int
    tokens_kept: int


async def play(say: Callable[[str], None], answer: Callable[[str], Awaitable[str]]) -> Played:
    """Play the whole story in a temporary folder; `answer` gives a person's answer to a question.

    Raises TimeoutError where Handbell did not do its part in a minute.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="handbell-demo-")))
        places = await _deploy(folder)
        progress = Progress()
        running = await stack.enter_async_context(handbell(_configuration(folder, places), progress))
        say("An agent runs in a process of its own and asks a person. Its pause is a signed token; Handbell has it")
        say("before anybody sees the question. Then that process ends.\n")
        here = {"ledger": places.ledger, "keyset": str(places.keyset)}
        async with running_agent(PAUSES_AGENT, **here, **_capture(running)) as pausing:
            paused = await pausing.ask(do="pause", session_id=SESSION)
        captured = await _tokens_kept(running)
        await progress.until(lambda: told_of_all(running.core.engine, 1))
        text = await answer(paused["question"])
        say(f"\nThe person was told once. Another process resumes the run with the token and the answer {text!r}:")
        async with running_agent(PAUSES_AGENT, **here) as resuming:
            first = await resuming.ask(do="resume", token=paused["token"], answer=text)
            say(f"  {first.get('said', first)}")
            second = await resuming.ask(do="resume", token=paused["token"], answer=text)
            say(f"  The same token once more: {second.get('message', second)}.\n")
        await progress.until(lambda: settled_and_told(running.core.engine, 1))
        evidence = await read_evidence(running.core.engine)
        kept = await _tokens_kept(running)
        return Played(evidence.requests[0], str(first.get("said", "")), str(second.get("refused", "")), captured, kept)


async def _deploy(folder: Path) -> Places:
    """Make the runtime's ledger and keys, as its operator would."""
    places = Places(f"sqlite:///{folder / 'ledger.db'}", folder / "runtime-keys.json")
    runtime = PausingRuntime(places, SystemClock())
    await runtime.create_tables()
    await runtime.close()
    return places


def _configuration(folder: Path, places: Places) -> Configuration:
    settings = Settings(
        state_dir=folder / "state",
        # Any free ports: another Handbell may run on this machine.
        web=WebSettings.model_validate({"listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0"}),
        sources=(
            SourceSettings.model_validate(
                {
                    "namespace": NAMESPACE,
                    "type": "pauses",
                    "ledger": places.ledger,
                    "sweep_every": timedelta(seconds=1),
                    "head_every": timedelta(seconds=1),
                }
            ),
        ),
        channels={"console": ChannelSettings(type="console")},
    )
    return Configuration(settings, folder, None)


def _capture(running: Running) -> dict[str, str]:
    assert running.public is not None, "every role runs here"
    [connection] = running.public.captures
    assert connection.token is not None, "it was made at this first start"
    return {"capture_url": f"{running.public.server.url}/capture/{NAMESPACE}", "capture_token": connection.token}


async def _tokens_kept(running: Running) -> int:
    """Return how many tokens of captured pauses Handbell still holds."""
    async with running.core.engine.connect() as connection:
        connection = await connection.execution_options(**READ_ONLY)
        counted = select(func.count()).where(CAPTURES.c.sealed_envelope.is_not(None))
        return int(await connection.scalar(counted) or 0)
