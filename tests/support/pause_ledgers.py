"""A runtime's issuance ledger that a test may write to: in Handbell's own tables, or in the documented shape."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock, FrozenClock
from config.metadata import METADATA
from reconciler.pause_store.tables import PAUSE_TABLES
from reconciler.sources.pauses import Options, PausesSource, build
from reconciler.sources.services import SourceServices
from tests.support.databases import engine_for
from tests.support.sources import SEEN_AT

NOW = SEEN_AT.timestamp()
SCOPE = "90f54e1caf436719"

_DOCUMENTED = (
    "CREATE TABLE issued_tokens (jti TEXT PRIMARY KEY, scope_hash TEXT, name TEXT, issued_at DOUBLE PRECISION,"
    " expires_at DOUBLE PRECISION, legacy_pinned BOOLEAN, vector_hash TEXT)",
    "CREATE TABLE token_consumptions (jti TEXT PRIMARY KEY, scope_hash TEXT, name TEXT, consumed_at DOUBLE PRECISION)",
)
_OURS = ("answer_token_issuance", "answer_token_consumption")


@dataclass
class Ledger:
    """A ledger, and what its runtime does with it."""

    url: str
    is_ours: bool = True
    engine: AsyncEngine = field(init=False)

    def __post_init__(self) -> None:
        self.engine = engine_for(self.url)

    async def create(self) -> None:
        """Make the tables."""
        async with self.engine.begin() as connection:
            if self.is_ours:
                await connection.run_sync(METADATA.create_all, tables=list(PAUSE_TABLES))
                return
            for statement in _DOCUMENTED:
                await connection.execute(text(statement))

    async def issue(self, jti: str, **changes: Any) -> None:
        """Record an issuance: a minute ago, for ten minutes."""
        values = {"jti": jti, "scope_hash": SCOPE, "name": "ask_user", "issued_at": NOW - 60, "expires_at": NOW + 540}
        values |= {"legacy_pinned": False, "vector_hash": ""}
        if self.is_ours:
            values |= {"session_id": f"session-of-{jti}", "run_id": "r", "call_id": "c", "request_hash": "h"}
        await self._insert(self._tables[0], values | changes)

    async def consume(self, jti: str, **changes: Any) -> None:
        """Record a redemption."""
        values = {"jti": jti, "scope_hash": SCOPE, "name": "ask_user", "consumed_at": NOW}
        if self.is_ours:
            values["claim_id"] = "c"
        await self._insert(self._tables[1], values | changes)

    async def execute(self, statement: str) -> None:
        """Run a statement, with the names {issued} and {consumed} for the tables."""
        issued, consumed = self._tables
        async with self.engine.begin() as connection:
            await connection.execute(text(statement.format(issued=issued, consumed=consumed)))

    async def break_down(self) -> None:
        """Take the ledger away from whoever reads it."""
        await self.engine.dispose()
        if self.url.startswith("sqlite"):
            path = Path(self.url.removeprefix("sqlite:///"))
            path.rename(f"{path}.away")
            return
        name = urlsplit(self.url).path.removeprefix("/")
        admin = await asyncpg.connect(self.url.replace(f"/{name}", "/postgres"))
        await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
        await admin.close()

    def source(self, clock: Clock | None = None, *, namespace: str = "test", **options: Any) -> PausesSource:
        """Build the source that reads it; its time stands at SEEN_AT unless a clock is given."""
        table = Options.model_validate({"ledger": self.url, **options})
        return build(namespace, table, SourceServices(clock or FrozenClock(SEEN_AT), Path("/")))

    @property
    def _tables(self) -> tuple[str, str]:
        return _OURS if self.is_ours else ("issued_tokens", "token_consumptions")

    async def _insert(self, name: str, values: dict[str, Any]) -> None:
        places = ", ".join(f":{column}" for column in values)
        async with self.engine.begin() as connection:
            await connection.execute(text(f"INSERT INTO {name} ({', '.join(values)}) VALUES ({places})"), values)


@pytest.fixture
async def sqlite_pause_ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Give a ledger in Handbell's own tables, in a file."""
    async with _created(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        yield ledger


@pytest.fixture
async def postgres_pause_ledger(postgres_url: str) -> AsyncIterator[Ledger]:
    """Give a ledger in Handbell's own tables, on a server."""
    async with _created(postgres_url) as ledger:
        yield ledger


@pytest.fixture
async def documented_ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Give a ledger in the documented shape, in a file."""
    async with _created(f"sqlite:///{tmp_path / 'documented.db'}", is_ours=False) as ledger:
        yield ledger


@pytest.fixture
async def documented_postgres_ledger(postgres_url: str) -> AsyncIterator[Ledger]:
    """Give a ledger in the documented shape, on a server."""
    async with _created(postgres_url, is_ours=False) as ledger:
        yield ledger


_FIXTURES = ("sqlite_pause_ledger", "postgres_pause_ledger", "documented_ledger", "documented_postgres_ledger")


@pytest.fixture(params=_FIXTURES, ids=["sqlite", "postgres", "documented-sqlite", "documented-postgres"])
def any_ledger(request: pytest.FixtureRequest) -> Ledger:
    """Return a ledger: once on each database and in each shape."""
    ledger: Ledger = request.getfixturevalue(request.param)
    return ledger


@asynccontextmanager
async def _created(url: str, *, is_ours: bool = True) -> AsyncIterator[Ledger]:
    ledger = Ledger(url, is_ours)
    await ledger.create()
    yield ledger
    await ledger.engine.dispose()
