"""The demo: a real agent pauses four times, Handbell tells a person of each once, and shows each settled state.

Everything is real and on this machine: a Cayu runtime in a child process, its events through `RedisStreamSink` and an
embedded Valkey, SQLite, mails over SMTP. The table at the end is read back from the database.
"""

import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.loading import Configuration
from config.settings import ChannelSettings, Settings, SourceSettings, WebSettings
from worker.channels.testing.smtp_server import FakeSmtp
from worker.demo.child import CAYU_AGENT, Child, running_agent
from worker.demo.evidence import Evidence, read_evidence, settled_and_told, told_of_all
from worker.demo.running import Progress, handbell
from worker.demo.story import SCENES
from worker.redis_server import open_redis
from worker.roles import Running

NAMESPACE = "demo"


@dataclass(frozen=True, slots=True)
class Played:
    """What the demo did and found."""

    evidence: Evidence
    mails: int
    replayed: int


async def play(say: Callable[[str], None]) -> Played:
    """Play the whole story in a temporary folder; TimeoutError where Handbell did not do its part in a minute."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="handbell-demo-")))
        mailbox = await stack.enter_async_context(FakeSmtp())
        configuration = _configuration(folder, mailbox)
        say("A Cayu agent starts in a process of its own; its events reach Handbell through an embedded Valkey.")
        progress = Progress()
        running, child = await _start(stack, configuration, folder, progress)
        for scene in SCENES:
            say(f"  {scene.session_id}: the agent {scene.title}")
            await child.ask(do="pause", kind=scene.kind, session_id=scene.session_id)
        await progress.until(lambda: told_of_all(running.core.engine, len(SCENES)))
        say("\nEach request was told once, on the console and by mail. Now people act, inside the runtime:")
        for scene in SCENES:
            await child.ask(do="settle", session_id=scene.session_id, verb=scene.verb)
            say(f"  {scene.session_id}: {scene.deed}")
        await progress.until(lambda: settled_and_told(running.core.engine, len(SCENES)))
        say("\nAn opening event of the first question arrives late, twice: once as a copy, once as if delayed.")
        accepted = (await child.ask(do="late", session_id=SCENES[0].session_id))["accepted"]
        await progress.until(lambda: _is_quiet(running))
        evidence = await read_evidence(running.core.engine)
        return Played(evidence, len(mailbox.mails), accepted - evidence.hints)


async def _start(
    stack: AsyncExitStack, configuration: Configuration, folder: Path, progress: Progress
) -> tuple[Running, Child]:
    """Start the agent first: its store must exist before Handbell is told to read it."""
    server = await stack.enter_async_context(open_redis(configuration))
    child = await stack.enter_async_context(
        running_agent(CAYU_AGENT, redis_url=server.url, namespace=NAMESPACE, store=str(folder / "cayu.db"))
    )
    return await stack.enter_async_context(handbell(configuration, progress, redis=server)), child


def _configuration(folder: Path, mailbox: FakeSmtp) -> Configuration:
    mail: dict[str, Any] = {
        "type": "email",
        "host": "127.0.0.1",
        "port": mailbox.port,
        "tls": "none",
        "from": "agents@demo.invalid",
        "to": ["you@demo.invalid"],
    }
    settings = Settings(
        state_dir=folder / "state",
        # Any free ports: another Handbell may run on this machine.
        web=WebSettings.model_validate({"listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0"}),
        sources=(SourceSettings(namespace=NAMESPACE, type="cayu", store=f"sqlite:///{folder / 'cayu.db'}"),),
        channels={"console": ChannelSettings(type="console"), "mail": ChannelSettings(**mail)},
    )
    return Configuration(settings, folder, None)


async def _is_quiet(running: Running) -> bool:
    """Answer whether every hint was looked at and nothing is left to send."""
    counts = await running.core.inbox.counts()
    return counts.unprocessed == 0 and await settled_and_told(running.core.engine, len(SCENES))
