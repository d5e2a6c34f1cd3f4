"""What the tests of the SQL ledger share: a clock, tokens, answers, and a database that can be made to fail."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import event, func, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import FrozenClock
from reconciler.pause_store.answers import Answer
from reconciler.pause_store.ledger import AnswerPlace, SqlTokenLedger
from reconciler.pauses import PauseClaims
from tests.contract.pause_tokens.kit import START, claims

MAX = 86_400
SCOPE = claims().scope_hash
EXP = claims().exp
PLACE = AnswerPlace(
    namespace="prod", attention_id="a-1", source="cayu", recipient_ref="alice", channel="mail", key_id="k1"
)


def clock_at(seconds: float = START) -> FrozenClock:
    """A clock that stands at an epoch second, to the microsecond."""
    return FrozenClock(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds))


def ledger_on(engine: AsyncEngine, at: float = START) -> SqlTokenLedger:
    return SqlTokenLedger(engine, clock_at(at), maximum_ttl_seconds=MAX)


async def issue(
    engine: AsyncEngine, jti: str = "a" * 32, place: AnswerPlace | None = None, **changes: Any
) -> PauseClaims:
    """Issue a token: a runtime's own, or for a request where a place is given."""
    token = claims(jti=jti, **changes)
    await ledger_on(engine).record_issuance(token, **({} if place is None else {"place": place}))
    return token


async def claim(engine: AsyncEngine, jti: str = "a" * 32, *, at: float = START, **changes: Any) -> bool:
    usual: dict[str, Any] = {"scope_hash": SCOPE, "name": "ask_user"}
    return await ledger_on(engine, at).claim(jti, **(usual | changes))


def answer(jti: str = "a" * 32, **changes: Any) -> Answer:
    usual: dict[str, Any] = {
        "namespace": "prod",
        "attention_id": "a-1",
        "jti": jti,
        "scope_hash": SCOPE,
        "name": "ask_user",
        "principal": "alice",
        "request_digest": "d" * 64,
        "answer_body": b"sealed",
        "now": START,
    }
    return Answer(**(usual | changes))


async def rows(engine: AsyncEngine, table: Any) -> int:
    async with engine.connect() as connection:
        return int(await connection.scalar(select(func.count()).select_from(table)) or 0)


@contextmanager
def lost_commits(engine: AsyncEngine, *, is_committed: bool, times: int = 1) -> Iterator[list[str]]:
    """Make the next commits raise as a lost connection does, after or instead of happening.

    A statement that is a transaction of its own counts as one.
    """
    dialect: Any = engine.sync_engine.dialect  # the only place that stands between us and the database
    commit = dialect.do_commit
    lost: list[str] = []

    def lose() -> None:
        lost.append("commit")
        error = ConnectionError("the connection was lost")
        raise OperationalError("COMMIT", None, error, connection_invalidated=True)

    def losing(connection: Any) -> None:
        if len(lost) >= times:
            commit(connection)
            return
        if is_committed:
            commit(connection)
        lose()

    def losing_alone(connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        is_alone = connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
        if is_alone and statement.startswith("INSERT") and len(lost) < times:
            lose()

    moment = "after_cursor_execute" if is_committed else "before_cursor_execute"
    dialect.do_commit = losing
    event.listen(engine.sync_engine, moment, losing_alone)
    try:
        yield lost
    finally:
        dialect.do_commit = commit
        event.remove(engine.sync_engine, moment, losing_alone)


@contextmanager
def failing(engine: AsyncEngine, statement_part: str, error: Exception) -> Iterator[None]:
    """Make every statement that contains the part raise before it reaches the database."""

    def refuse(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement_part in statement:
            raise error

    event.listen(engine.sync_engine, "before_cursor_execute", refuse)
    try:
        yield
    finally:
        event.remove(engine.sync_engine, "before_cursor_execute", refuse)
