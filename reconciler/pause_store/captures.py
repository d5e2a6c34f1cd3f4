"""What agents' processes handed over of their pauses, the token sealed, until the request is settled.

Settling and keeping may meet: the keeper locks the request's row before it looks at it, and the transaction that
settles has that row first and empties the capture after. So whichever comes second sees the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.database import READ_ONLY
from config.statements import insert_ignoring
from reconciler.pause_store.checkpoints import Sealer
from reconciler.pause_store.tables import CAPTURES
from reconciler.states import AttentionState
from reconciler.tables import NOTIFICATIONS


@dataclass(frozen=True, slots=True)
class Capture:
    """A pause as its process told of it; `envelope` is the runtime's own token as it travels.

    A pause that is not `is_resumable` can be shown and never answered from here, whatever was captured.
    """

    jti: str
    name: str
    session_id: str
    run_id: str
    root_run_id: str
    call_id: str
    thread_id: str
    checkpoint_id: str
    is_resumable: bool
    envelope: str | None = field(repr=False)

    @property
    def is_answerable(self) -> bool:
        """Answer whether an answer could be carried back to the run."""
        return self.is_resumable and self.envelope is not None


class CaptureDiffersError(Exception):
    """The pause was captured before, and said to be something else."""


class CaptureStore:
    """The captures of one namespace."""

    def __init__(self, engine: AsyncEngine, namespace: str, sealer: Sealer) -> None:
        self._engine = engine
        self._namespace = namespace
        self._sealer = sealer

    async def keep(self, attention_id: str, capture: Capture, *, is_over: bool, now: datetime) -> bool:
        """Commit a capture, its token sealed; return whether it is new. The first one stands.

        `is_over` says that the pause is settled already, as does a settled request: the token is then not kept.
        Raises CaptureDiffersError for another capture of the same pause, the sealer's error before anything is
        written, and SQLAlchemy's errors.
        """
        assert capture.envelope is not None, "there is a token to keep"
        sealed = self._sealer.seal(capture.envelope.encode())
        async with self._engine.begin() as connection:
            is_settled = is_over or await self._lock_request(connection, attention_id, capture)
            values = {name: getattr(capture, name) for name in _SAID}
            inserted = await connection.execute(
                insert_ignoring(connection, CAPTURES)
                .values(
                    namespace=self._namespace,
                    attention_id=attention_id,
                    sealed_envelope=None if is_settled else sealed,
                    captured_at=now,
                    **values,
                )
                .returning(CAPTURES.c.jti)
            )
            is_new = inserted.first() is not None
            found = await self._row(connection, attention_id)
        assert found is not None, "it was inserted, or was there"
        if any(getattr(found, name) != said for name, said in values.items()):
            raise CaptureDiffersError("the pause was captured before, and said to be something else")
        return is_new

    async def find(self, attention_id: str) -> Capture | None:
        """Return the capture of a request, with its token while it is kept; None where there is none.

        Raises ValueError where the token was not sealed with a key of ours.
        """
        async with self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            row = await self._row(connection, attention_id)
        if row is None:
            return None
        sealed = row.sealed_envelope
        envelope = None if sealed is None else self._sealer.unseal(sealed).decode()
        return Capture(**{name: getattr(row, name) for name in _SAID}, envelope=envelope)

    async def _lock_request(self, connection: AsyncConnection, attention_id: str, capture: Capture) -> bool:
        """Hold the request's row, name its session where the ledger could not; return whether it is settled."""
        columns = NOTIFICATIONS.c
        is_it = (columns.namespace == self._namespace) & (columns.attention_id == attention_id)
        state = await connection.scalar(select(columns.state).where(is_it).with_for_update())
        if state is None:
            return False
        await connection.execute(
            update(NOTIFICATIONS).where(is_it, columns.session_id == "").values(session_id=capture.session_id)
        )
        return AttentionState(state).is_terminal

    async def _row(self, connection: AsyncConnection, attention_id: str) -> Row[Any] | None:
        columns = [CAPTURES.c[name] for name in (*_SAID, "sealed_envelope")]
        found = await connection.execute(
            select(*columns).where(CAPTURES.c.namespace == self._namespace, CAPTURES.c.attention_id == attention_id)
        )
        return found.first()


async def forget_tokens(connection: AsyncConnection, namespace: str, attention_ids: Sequence[str]) -> None:
    """Delete the tokens of requests that this transaction settled."""
    if attention_ids:
        await connection.execute(
            update(CAPTURES)
            .where(
                CAPTURES.c.namespace == namespace,
                CAPTURES.c.attention_id.in_(sorted(attention_ids)),
                CAPTURES.c.sealed_envelope.is_not(None),
            )
            .values(sealed_envelope=None)
        )


_SAID = (
    "jti",
    "name",
    "session_id",
    "run_id",
    "root_run_id",
    "call_id",
    "thread_id",
    "checkpoint_id",
    "is_resumable",
)
