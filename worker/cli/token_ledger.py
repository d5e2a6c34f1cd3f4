"""The ledger that `handbell tokens` works on, and how its refusals become one line."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import URL, inspect
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import SystemClock
from config.database import create_engine, database_url
from config.database_errors import database_place, said_in_one_line
from config.errors import ConfigError, DependencyError, SettingsError
from config.loading import Configuration
from config.migrate import require_current
from reconciler.audit import record_audit
from reconciler.pause_store.errors import PauseStoreUnavailableError
from reconciler.pause_store.ledger import SqlTokenLedger
from reconciler.pause_store.reader import Outstanding, outstanding
from reconciler.pause_store.tables import ISSUANCE
from reconciler.pauses import DrainProof, HumanInteractionError, RetirementHorizon


class Ledger:
    """One ledger; what a person changes in it is recorded in Handbell's own audit. Raises ConfigError (one line)."""

    def __init__(self, engine: AsyncEngine, own: AsyncEngine, *, longest: timedelta) -> None:
        self._engine = engine
        self._own = own
        self._clock = SystemClock()
        self._ledger = SqlTokenLedger(engine, self._clock, maximum_ttl_seconds=longest.total_seconds())

    async def outstanding(self) -> AsyncIterator[Outstanding]:
        """Yield every live token, soonest expiry first."""
        now = self._clock.now().timestamp()
        after = None
        while True:
            async with _in_one_line():
                page = await outstanding(self._engine, now=now, after=after)
            for token in page.tokens:
                yield token
            if page.after is None:
                return
            after = page.after

    async def revoke(self, *, jti: str | None, kid: str | None, actor: str) -> int:
        """Take back one token, or every live one of a key; return how many."""
        async with _in_one_line():
            if kid is not None:
                revoked = await self._ledger.revoke_key(kid)
            else:
                assert jti is not None, "one of the two is named"
                revoked = int(await self._ledger.revoke(jti))
        if revoked:
            await self.record(actor, "tokens.revoke", kid or jti or "", f"{revoked} revoked")
        return revoked

    async def drain_proof(self) -> DrainProof:
        """Say whether tokens of the retired format are over."""
        async with _in_one_line():
            return await self._ledger.drain_proof()

    async def record_horizon(self, at: datetime, reason: str, *, actor: str) -> RetirementHorizon:
        """Record the horizon, once."""
        async with _in_one_line():
            horizon = await self._ledger.record_retirement_horizon(at.timestamp(), reason)
        await self.record(actor, "tokens.horizon", at.isoformat(), reason)
        return horizon

    async def record(self, actor: str, action: str, subject: str, detail: str) -> None:
        """Write down in Handbell's own audit what a person did."""
        async with self._own.begin() as connection:
            await record_audit(connection, actor, action, subject, detail, now=self._clock.now())


@asynccontextmanager
async def open_ledger(configuration: Configuration, url: str | None, *, longest: timedelta) -> AsyncIterator[Ledger]:
    """Open Handbell's own ledger, or a runtime's in the same tables; makes neither. Raises ConfigError (one line)."""
    own = create_engine(configuration.database_url)
    other = create_engine(_existing(url, configuration.folder)) if url is not None else None
    try:
        await require_current(own)
        if other is not None:
            await _require_ledger(other)
        yield Ledger(other or own, own, longest=longest)
    finally:
        await own.dispose()
        if other is not None:
            await other.dispose()


def _existing(text: str, folder: Path) -> URL:
    try:
        url = database_url(text, relative_to=folder)
    except SettingsError as error:
        raise SettingsError(str(error).replace("[database] url", "--ledger")) from None
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise SettingsError(f"--ledger: {database_place(url)} is not there (nothing was created)")
    return url


async def _require_ledger(engine: AsyncEngine) -> None:
    async with said_in_one_line(engine.url), engine.connect() as connection:
        is_there = await connection.run_sync(lambda sync: inspect(sync).has_table(ISSUANCE.name))
    if not is_there:
        raise SettingsError(f"--ledger: {database_place(engine.url)} has no table {ISSUANCE.name}")


@asynccontextmanager
async def _in_one_line() -> AsyncIterator[None]:
    try:
        yield
    except PauseStoreUnavailableError as error:
        raise DependencyError(str(error)) from None
    except HumanInteractionError as error:
        raise ConfigError(str(error)) from None
