"""The capture door on a real database and a real TCP port, over a ledger that the test writes to."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.types import ASGIApp

from config.clock import FrozenClock
from reconciler.namespaces import Namespaces
from reconciler.notifications import Notifications
from reconciler.pause_store.captures import CaptureStore
from reconciler.pause_store.tables import CAPTURES
from reconciler.sources.pauses import PausesSource, pause_attention_id
from reconciler.tables import NAMESPACES, NOTIFICATIONS
from tests.support.handoff import TOKEN, routing
from tests.support.pause_ledgers import Ledger
from tests.support.sources import SEEN_AT
from worker.answers.keyset_file import FileKeyset, make_keyset
from worker.answers.sealing import KeysetSealer
from worker.web.capture import CapturePoint, CaptureReceiver, capture_route
from worker.web.public import public_app
from worker.web.rates import RateLimit
from worker.web.tokens import Tokens

NAMESPACE = "prod"
ID = pause_attention_id(NAMESPACE, "a")
ENVELOPE = "header.a-runtimes-own-token.signature"


@dataclass
class Capturing:
    """Everything that stands behind the door, on one database."""

    engine: AsyncEngine
    ledger: Ledger
    keyset: Path

    def __post_init__(self) -> None:
        self.clock = FrozenClock(SEEN_AT)
        self.source: PausesSource = self.ledger.source(self.clock, namespace=NAMESPACE)
        make_keyset(self.keyset, "k1")
        self.store = CaptureStore(self.engine, NAMESPACE, KeysetSealer(FileKeyset(self.keyset, self.clock)))
        self.notifications = Notifications(self.engine, self.clock, routing)
        self.namespaces = Namespaces(self.engine, self.clock)

    def app(self, *, per_second: float = 10_000) -> ASGIApp:
        """Return the public application with nothing but this door."""
        receiver = CaptureReceiver(NAMESPACE, self.source, self.store, self.notifications, self.namespaces, self.clock)
        rate = RateLimit(self.clock, per_second=per_second, burst=int(per_second))
        return public_app([capture_route({NAMESPACE: CapturePoint(receiver, Tokens([TOKEN]), rate)})])

    async def post(self, body: Any, *, namespace: str = NAMESPACE, token: str = TOKEN) -> httpx.Response:
        """Call the door without a socket."""
        transport = httpx.ASGITransport(app=self.app(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://handbell.test") as client:
            headers = {"Authorization": f"Bearer {token}"}
            return await client.post(f"/capture/{namespace}", content=json.dumps(body), headers=headers)

    async def sealed(self) -> Sequence[bytes | None]:
        """Return what the database holds of every captured token."""
        async with self.engine.connect() as connection:
            return list(await connection.scalars(select(CAPTURES.c.sealed_envelope)))

    async def requests(self) -> list[tuple[str, str, str]]:
        """Return (attention id, state, session id) of every request."""
        columns = NOTIFICATIONS.c
        async with self.engine.connect() as connection:
            rows = await connection.execute(select(columns.attention_id, columns.state, columns.session_id))
            return [(row.attention_id, row.state, row.session_id) for row in rows]

    async def head_due_at(self) -> Any:
        """Return when the next head pass is due."""
        async with self.engine.connect() as connection:
            return await connection.scalar(select(NAMESPACES.c.head_due_at))


@asynccontextmanager
async def capturing(engine: AsyncEngine, ledger: Ledger, folder: Path) -> AsyncIterator[Capturing]:
    """Open the door for a block; a run waits in the ledger under the token id "a"."""
    await ledger.issue("a")
    made = Capturing(engine, ledger, folder / "keys.json")
    await made.namespaces.remember(NAMESPACE, "pauses", made.source)
    yield made
    await made.source.close()


def body(**changes: Any) -> dict[str, Any]:
    """A pause as it travels; a change to ... leaves the key out."""
    usual = {
        "protocol": "handbell.capture/v1",
        "jti": "a",
        "name": "ask_user",
        "envelope": ENVELOPE,
        "session_id": "session-1",
        "run_id": "run-1",
        "root_run_id": "run-0",
        "call_id": "call-1",
        "thread_id": "acme:_:session-1",
        "checkpoint_id": "cp-1",
        "resumable": True,
    }
    return {name: value for name, value in (usual | changes).items() if value is not ...}
