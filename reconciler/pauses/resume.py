"""How a paused run is answered: eight steps, and only the last one changes anything.

1 the signer vouches    2 the claims are read    3 the window is open      (one clock reading for all)
4 the interaction is known, the four axes match, a crossing of scopes is audited
5 the recorded request is the one that was hashed, and has its shape
6 the answer has its shape and fits the request
7 the turn to go on from
8 the token is redeemed: once, last
"""

import inspect
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from .checkpoints import PausePayloadStore
from .errors import PayloadBindingError, ResponseValidationError
from .registrations import InteractionRegistration, InteractionRegistry, describe_misfit
from .tokens import PauseTokenService
from .turnstate import TurnCheckpoint, TurnCheckpointStore
from .values import CrossScopeRedemption, ValidatedPause

CrossScopeAudit = Callable[[CrossScopeRedemption], Awaitable[None] | None]
"""Told of every attempt from another scope, before anything of the answer is looked at; may be async."""


@dataclass(frozen=True, slots=True)
class ResumeCommand:
    """An answer and where it is presented. None means that an axis is not stated and not compared."""

    envelope: Any = field(repr=False)
    response: Any = field(repr=False)
    scope: Any
    session_id: str | None = None
    run_id: str | None = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeOutcome:
    """What the runtime goes on with. `time_to_resolve_seconds` is 0.0 where the token does not say when it began."""

    name: str
    thread_id: str
    checkpoint_id: str
    payload: Any = field(repr=False)
    response: Any = field(repr=False)
    run_id: str
    session_id: str
    tool_call_id: str = ""
    interrupt_id: str = ""
    cross_scope: bool = False
    time_to_resolve_seconds: float = 0.0
    turn: TurnCheckpoint | None = field(default=None, repr=False)

    def as_configurable(self) -> dict[str, dict[str, str]]:
        """Return where to go on, in the form that graph runtimes take."""
        return {"configurable": {"thread_id": self.thread_id, "checkpoint_id": self.checkpoint_id}}


class ResumePort:
    """Takes answers."""

    def __init__(
        self,
        *,
        registry: InteractionRegistry,
        service: PauseTokenService,
        payloads: PausePayloadStore,
        turns: TurnCheckpointStore,
        audit: CrossScopeAudit | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._service = service
        self._payloads = payloads
        self._turns = turns
        self._audit = audit
        self._clock = clock

    async def resume(self, command: ResumeCommand, *, require_turn: bool = False) -> ResumeOutcome:
        """Redeem the token for this answer and return what to go on with.

        Whatever fails before the last step leaves the token good. `require_turn` refuses an answer that this
        or another process could not go on from; without it a missing turn is None. Raises the token's refusals,
        UnknownInteractionError, PauseCheckpointNotFoundError, CheckpointLostError, ResponseValidationError and
        TurnStateNotRecordedError. What a record's backend raises passes unchanged: nothing was decided, and the
        same command may be tried again.
        """
        now = self._clock()
        validated = self._service.authenticate(command.envelope, at=now)
        registration = self._registry.get(validated.claims.name)
        validated = await self._bind(validated, command, registration, now)
        payload = await self._load(validated, registration)
        response = await self._check_response(registration, command.response, payload)
        turns = self._turns.load if require_turn else self._turns.find
        turn = await turns(validated.claims)
        await self._service.consume(validated)
        claims = validated.claims
        return ResumeOutcome(
            name=claims.name,
            thread_id=claims.thread_id,
            checkpoint_id=claims.checkpoint_id,
            payload=payload,
            response=response,
            run_id=claims.run_id,
            session_id=claims.session_id,
            tool_call_id=claims.tool_call_id,
            interrupt_id=claims.interrupt_id,
            cross_scope=validated.cross_scope,
            time_to_resolve_seconds=max(0.0, now - claims.issued_at) if claims.issued_at else 0.0,
            turn=turn,
        )

    async def _bind(
        self, validated: ValidatedPause, command: ResumeCommand, registration: InteractionRegistration, now: float
    ) -> ValidatedPause:
        bound = self._service.bind(
            validated,
            scope=command.scope,
            session_id=command.session_id,
            run_id=command.run_id,
            call_id=command.call_id,
            registration=registration,
        )
        if bound.cross_scope and self._audit is not None:
            await _settled(
                self._audit(
                    CrossScopeRedemption(
                        name=bound.claims.name,
                        interrupt_id=bound.claims.interrupt_id,
                        jti=bound.claims.jti,
                        expected_scope_hash=bound.claims.scope_hash,
                        presented_scope_hash=self._service.scope_hash(command.scope),
                        at=now,
                    )
                )
            )
        return bound

    async def _load(self, validated: ValidatedPause, registration: InteractionRegistration) -> Any:
        recorded = await self._payloads.load(validated.claims)
        try:
            return registration.payload_schema.model_validate(recorded)
        except Exception as error:
            # The cause is not chained: a schema's error quotes what it was given.
            misfit = describe_misfit(error)
            raise PayloadBindingError(f"the recorded request does not fit its shape: {misfit}") from None

    async def _check_response(self, registration: InteractionRegistration, response: Any, payload: Any) -> Any:
        try:
            checked = registration.response_schema.model_validate(response)
            fits = None
            if registration.validate_response is not None:
                fits = await _settled(registration.validate_response(checked, payload))
        except ResponseValidationError:
            raise
        except Exception as error:
            misfit = describe_misfit(error)
            raise ResponseValidationError(f"the answer does not fit {registration.name!r}: {misfit}") from None
        if fits is False:
            raise ResponseValidationError(f"the answer does not fit this question of {registration.name!r}")
        return checked


async def _settled(outcome: Any) -> Any:
    """Return what a callable said, waiting for it where it is async: an unawaited check would always pass."""
    return await outcome if inspect.isawaitable(outcome) else outcome
