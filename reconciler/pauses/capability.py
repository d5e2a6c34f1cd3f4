"""The capability as a runtime sees it: pause a run, resume it, and contribute both to an agent."""

import inspect
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Self

from .binding import ScopeBinder
from .checkpoints import CheckpointCommandPort, PausePayloadStore
from .consumption import ConsumptionPort, require_durable_consumption
from .contribution import Contribution, TakenPause, ToolCall, contribution_of
from .errors import InteractionConfigurationError
from .ledger import IssuanceLedgerPort
from .pausing import PausePort
from .registrations import InteractionRegistration, InteractionRegistry
from .resume import CrossScopeAudit, ResumeCommand, ResumeOutcome, ResumePort
from .tokens import EnvelopeSignerPort, PauseTokenService
from .ttl import TTLPolicy
from .turnstate import TurnCheckpoint, TurnCheckpointStore
from .values import InteractionEvent, PauseBinding

BindingResolver = Callable[[Any], PauseBinding | Awaitable[PauseBinding]]
"""Returns where a run stands, from the run's own request; asked afresh for each pause. May be async."""

TokenEncoder = Callable[[Any], str]
"""Turns an envelope into the text that travels."""

TokenDecoder = Callable[[str], Any]
"""Turns the text that travels back into an envelope, for the signer to judge."""


class HumanInteractionCapability:
    """The interactions of one deployment, compiled.

    `decode_token` may be left out: pauses can then be taken, and their tokens not be read back by `read_token`.
    """

    name = "human_interaction"

    def __init__(
        self,
        *,
        registry: InteractionRegistry,
        service: PauseTokenService,
        payloads: PausePayloadStore,
        turns: TurnCheckpointStore | None = None,
        audit: CrossScopeAudit | None = None,
        clock: Callable[[], float] = time.time,
        binding: BindingResolver | None = None,
        encode_token: TokenEncoder | None = None,
        decode_token: TokenDecoder | None = None,
    ) -> None:
        self.registry = registry
        self.service = service
        self.payloads = payloads
        self.turns = TurnCheckpointStore() if turns is None else turns
        self._binding = binding
        self._encode_token = encode_token
        self._decode_token = decode_token
        self._pauses = PausePort(registry=registry, service=service, payloads=payloads, turns=self.turns)
        self._resumes = ResumePort(
            registry=registry, service=service, payloads=payloads, turns=self.turns, audit=audit, clock=clock
        )

    @classmethod
    def compile(
        cls,
        registrations: Iterable[InteractionRegistration],
        *,
        signer: EnvelopeSignerPort,
        ttl: TTLPolicy,
        consumption: ConsumptionPort | None = None,
        ledger: IssuanceLedgerPort | None = None,
        checkpoints: CheckpointCommandPort | None = None,
        clock: Callable[[], float] = time.time,
        pinless_policy: Any = None,
        audit: CrossScopeAudit | None = None,
        require_durable: bool = True,
        binding: BindingResolver | None = None,
        encode_token: TokenEncoder | None = None,
        decode_token: TokenDecoder | None = None,
    ) -> Self:
        """Put the parts together; whatever cannot work is refused here and not at the first pause.

        Request and turn are kept through the same checkpoint commands. Raises DuplicateInteractionError,
        InteractionConfigurationError and, unless `require_durable` is switched off, ConsumptionDurabilityError
        where pauses outlive the process and redemptions do not.
        """
        binder = ScopeBinder()
        service = PauseTokenService(
            signer,
            ttl=ttl,
            consumption=consumption,
            ledger=ledger,
            binder=binder,
            clock=clock,
            pinless_policy=pinless_policy,
        )
        payloads = PausePayloadStore(checkpoints, binder)
        if require_durable:
            require_durable_consumption(service.consumption, payloads.durable)
        return cls(
            registry=InteractionRegistry(registrations),
            service=service,
            payloads=payloads,
            turns=TurnCheckpointStore(checkpoints),
            audit=audit,
            clock=clock,
            binding=binding,
            encode_token=encode_token,
            decode_token=decode_token,
        )

    @property
    def active(self) -> bool:
        """Whether anything is registered."""
        return len(self.registry) > 0

    def names(self) -> tuple[str, ...]:
        """Return the registered names, sorted."""
        return self.registry.names()

    async def pause(
        self,
        name: str,
        payload: Any,
        *,
        binding: PauseBinding,
        tool_call_id: str = "",
        interrupt_id: str = "",
        turn_state: TurnCheckpoint | None = None,
        ttl_seconds: float | None = None,
        legacy_pinned: bool = False,
    ) -> InteractionEvent:
        """Pause a run; see PausePort.pause."""
        return await self._pauses.pause(
            name,
            payload,
            binding=binding,
            tool_call_id=tool_call_id,
            interrupt_id=interrupt_id,
            turn_state=turn_state,
            ttl_seconds=ttl_seconds,
            legacy_pinned=legacy_pinned,
        )

    async def resume(self, command: ResumeCommand, *, require_turn: bool = False) -> ResumeOutcome:
        """Answer a paused run; see ResumePort.resume."""
        return await self._resumes.resume(command, require_turn=require_turn)

    def read_token(self, token: str) -> Any:
        """Return the envelope in a token that travelled; nothing about it is verified yet.

        Raises InteractionConfigurationError where no `decode_token` was given.
        """
        if self._decode_token is None:
            raise InteractionConfigurationError("no decode_token was given: tokens can be minted and not read back")
        return self._decode_token(token)

    def contribute(self, request: Any) -> Contribution:
        """Return what this capability adds to one run: a stage before tools and one tool per interaction.

        Nothing unless an interaction is registered, a binding can be resolved and a token can be written down;
        the contribution bears the capability's name all the same.
        """
        if not self.active or self._binding is None or self._encode_token is None:
            return Contribution(self.name)
        return contribution_of(self.name, self.names(), lambda call: self._take(request, call))

    async def _take(self, request: Any, call: ToolCall) -> TakenPause:
        assert self._binding is not None, "contributed only with a binding"
        assert self._encode_token is not None, "contributed only with an encoder"
        resolved = self._binding(request)
        binding = await resolved if inspect.isawaitable(resolved) else resolved
        event = await self._pauses.pause(
            call.name, dict(call.arguments), binding=binding, tool_call_id=call.call_id, turn_state=call.turn_state
        )
        return TakenPause(event, self._encode_token(event.pause.envelope))
