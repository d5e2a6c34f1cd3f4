"""The one answer of a request: taken together with its token, or not at all.

Two conditional writes in one transaction. The first gives the request its answer, so that of several tokens for one
request only one is redeemed; the second redeems the token. A crash after the commit finds the answer as a row that is
still to be dispatched, so a redeemed token never strands its run.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from config.database import READ_ONLY
from config.statements import insert_ignoring
from reconciler.pause_store.claiming import Claim, explain, redeem
from reconciler.pause_store.errors import AlreadyAnsweredError
from reconciler.pause_store.failures import commit, try_again
from reconciler.pause_store.tables import ANSWERS, CLAIM_ID_CHARS
from reconciler.pauses import HumanInteractionError


class AnswerState(StrEnum):
    """How far an answer has come: the acceptance writes the only state so far, the dispatch moves it on."""

    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that passed every check, and the token that brings it.

    `request_digest` tells this answer from any other to the same request, so that a repeated post is known again.
    `answer_body` is what will be sent to the runtime, already sealed. `now` is the one reading of the clock that
    expiry was checked with (epoch seconds): an answer taken in time may commit just after.
    """

    namespace: str
    attention_id: str
    jti: str
    scope_hash: str
    name: str
    principal: str
    request_digest: str
    answer_body: bytes = field(repr=False)
    now: float


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer that a request has; `accepted_at` is epoch seconds."""

    jti: str
    principal: str
    request_digest: str
    answer_body: bytes = field(repr=False)
    accepted_at: float
    state: AnswerState

    def is_of(self, answer: Answer) -> bool:
        """Return whether this is that very answer, by that person, with that token."""
        return (self.jti, self.principal, self.request_digest) == (answer.jti, answer.principal, answer.request_digest)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The request's answer is this one; `is_repeated` where it was before this call."""

    stored: StoredAnswer
    is_repeated: bool


class AnswerStore:
    """Takes answers; the tables must be there."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def accept(self, answer: Answer) -> Acceptance:
        """Make this the request's answer and redeem its token, both or neither.

        Safe to call again with the same answer: the repetition is told so, whoever answered first stays. A commit
        whose outcome was lost is settled by reading the request's answer. Raises AlreadyAnsweredError where the
        request has another answer; otherwise, with nothing written, what stands in the token's way
        (UnissuedTokenError, PauseTokenReplayedError, TokenRevokedError, PauseTokenExpiredError, TokenLedgerError);
        PauseStoreUnavailableError where nothing is known.
        """
        async with try_again():
            is_committed = await self._accept_once(answer)
            if is_committed is None and await self.find(answer.namespace, answer.attention_id) is None:
                is_committed = await self._accept_once(answer)
            stored = await self.find(answer.namespace, answer.attention_id)
            if stored is None:
                raise await self._explain(answer)
        if not stored.is_of(answer):
            raise AlreadyAnsweredError("the request was answered already")
        return Acceptance(stored, is_repeated=is_committed is False)

    async def find(self, namespace: str, attention_id: str) -> StoredAnswer | None:
        """Return the request's answer, if it has one."""
        statement = select(
            ANSWERS.c.jti,
            ANSWERS.c.principal,
            ANSWERS.c.request_digest,
            ANSWERS.c.answer_body,
            ANSWERS.c.accepted_at,
            ANSWERS.c.state,
        ).where(ANSWERS.c.namespace == namespace, ANSWERS.c.attention_id == attention_id)
        async with try_again(), self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            found = (await connection.execute(statement)).first()
        if found is None:
            return None
        return StoredAnswer(
            jti=found.jti,
            principal=found.principal,
            request_digest=found.request_digest,
            answer_body=found.answer_body,
            accepted_at=found.accepted_at,
            state=AnswerState(found.state),
        )

    async def _explain(self, answer: Answer) -> HumanInteractionError:
        async with self._engine.connect() as connection:
            connection = await connection.execution_options(**READ_ONLY)
            return await explain(connection, _claim_of(answer))

    async def _accept_once(self, answer: Answer) -> bool | None:
        """Return whether the answer was written; None where its commit failed, so that either may be true."""
        claim = _claim_of(answer)
        async with self._engine.connect() as connection:
            if not await _write_answer(connection, answer):
                return False
            if not await redeem(connection, claim):
                await connection.rollback()
                raise await explain(connection, claim)
            return True if await commit(connection) else None


def _claim_of(answer: Answer) -> Claim:
    return Claim(
        jti=answer.jti,
        scope_hash=answer.scope_hash,
        name=answer.name,
        now=answer.now,
        claim_id=answer.request_digest[:CLAIM_ID_CHARS],
        namespace=answer.namespace,
        attention_id=answer.attention_id,
    )


async def _write_answer(connection: AsyncConnection, answer: Answer) -> bool:
    statement = (
        insert_ignoring(connection, ANSWERS)
        .values(
            namespace=answer.namespace,
            attention_id=answer.attention_id,
            jti=answer.jti,
            principal=answer.principal,
            request_digest=answer.request_digest,
            answer_body=answer.answer_body,
            accepted_at=answer.now,
            state=AnswerState.ACCEPTED,
            attempts=0,
            next_attempt_at=answer.now,
        )
        .returning(ANSWERS.c.jti)
    )
    return (await connection.execute(statement)).first() is not None
