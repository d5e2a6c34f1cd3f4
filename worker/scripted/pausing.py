"""A scripted agent runtime whose runs pause by the human-interaction capability and resume in another process.

Everything that it keeps stands in one database: its ledger, its requests and its turns, the last two sealed. A run is a
list of steps; the model's calls go through the capability's stage before any tool, as the capability asks of a runtime.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock
from config.database import create_engine, database_url
from config.metadata import METADATA
from reconciler.pause_store.audit import CrossScopeAuditLog
from reconciler.pause_store.checkpoints import SqlCheckpoints
from reconciler.pause_store.ledger import SqlTokenLedger
from reconciler.pause_store.tables import PAUSE_TABLES
from reconciler.pauses import (
    HumanInteractionCapability,
    PauseBinding,
    ResumeCommand,
    ResumeOutcome,
    TTLPolicy,
    TurnCheckpoint,
    human_interaction,
    thread_id_for,
)
from reconciler.pauses.contribution import TakenPause, ToolCall
from worker.answers.keyset_file import FileKeyset, make_keyset
from worker.answers.sealing import KeysetSealer
from worker.answers.signer import JwsSigner, open_token

TTL = TTLPolicy(default_seconds=600, maximum_seconds=86_400)
QUESTION = "Deploy to production?"


@dataclass(frozen=True, slots=True)
class Tenant:
    """Whose runs these are."""

    tenant_id: str = "acme"
    sub_tenant_id: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """Where a deployment of the runtime keeps its ledger and its keys."""

    ledger: str
    keyset: Path


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that came to its end: what it said last, and the messages that led there."""

    said: str
    messages: Sequence[Any] = field(repr=False)


class PausingRuntime:
    """One process of the deployment."""

    def __init__(self, places: Places, clock: Clock, *, scope: Any = None) -> None:
        self.engine: AsyncEngine = create_engine(database_url(places.ledger, relative_to=Path("/")))
        keys = FileKeyset(places.keyset, clock)
        make_keyset(places.keyset, "k1")
        self.scope = Tenant() if scope is None else scope
        self.ledger = SqlTokenLedger(self.engine, clock, maximum_ttl_seconds=TTL.maximum_seconds)
        self.checkpoints = SqlCheckpoints(self.engine, clock, KeysetSealer(keys))
        self.capability: HumanInteractionCapability = human_interaction(
            signer=JwsSigner(keys, clock),
            binding=lambda run: run,
            encode_token=lambda envelope: str(envelope.token),
            decode_token=open_token,
            ttl=TTL,
            ledger=self.ledger,
            checkpoints=self.checkpoints,
            clock=lambda: clock.now().timestamp(),
            audit=CrossScopeAuditLog(self.engine).record,
        )

    async def create_tables(self) -> None:
        """Make the tables of a new deployment."""
        async with self.engine.begin() as connection:
            await connection.run_sync(METADATA.create_all, tables=list(PAUSE_TABLES))

    async def pause(
        self, session_id: str, *, question: str = QUESTION, call_id: str = "call-1", has_turn: bool = True
    ) -> TakenPause:
        """Run a session until its model asks a person; without a turn nobody else could go on from there."""
        run = PauseBinding(scope=self.scope, run_id=f"run-of-{session_id}", session_id=session_id)
        await self.checkpoints.set_current(thread_id_for(self.scope, session_id), f"checkpoint-of-{call_id}")
        messages = ({"role": "user", "text": "Ship it."}, {"role": "assistant", "calls": call_id})
        turn = TurnCheckpoint(prompt="Ship it.", messages=messages) if has_turn else None
        stage = self.capability.contribute(run).pre_tool_stage
        assert stage is not None, "the capability has a binding and a way to write tokens down"
        taken = await stage(ToolCall("ask_user", {"question": question}, call_id, turn))
        assert taken is not None, "ask_user is registered"
        return taken

    async def resume(self, token: str, answer: str, **stated: Any) -> Ended:
        """Redeem the token for the answer and run on to the end; raises what refuses the token or the answer."""
        command = ResumeCommand(self.capability.read_token(token), {"answer": answer}, self.scope, **stated)
        return _run_on(await self.capability.resume(command, require_turn=True))

    async def close(self) -> None:
        """Close the connections."""
        await self.engine.dispose()


def _run_on(outcome: ResumeOutcome) -> Ended:
    """The rest of the script: the model hears the answer and says its last word."""
    assert outcome.turn is not None, "it was required"
    heard = {"role": "tool", "call": outcome.tool_call_id, "text": outcome.response.answer}
    said = f"You answered {outcome.response.answer!r}."
    return Ended(said, (*outcome.turn.messages, heard, {"role": "assistant", "text": said}))
