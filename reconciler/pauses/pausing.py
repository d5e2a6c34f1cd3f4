"""How a run pauses: everything that can be refused is refused before a token exists."""

from dataclasses import replace
from typing import Any

from .binding import ScopeBinder
from .checkpoints import PausePayloadStore, parse_json
from .errors import PauseCheckpointNotFoundError, PayloadBindingError
from .keys import interrupt_id_for, payload_key
from .registrations import InteractionRegistration, InteractionRegistry, describe_misfit
from .threads import thread_id_for
from .tokens import PauseTokenService
from .turnstate import TurnCheckpoint, TurnCheckpointStore
from .values import InteractionEvent, MintedPause, PauseBinding


class PausePort:
    """Takes pauses: checks, mints, records, and hands out the event."""

    def __init__(
        self,
        *,
        registry: InteractionRegistry,
        service: PauseTokenService,
        payloads: PausePayloadStore,
        turns: TurnCheckpointStore,
        binder: ScopeBinder | None = None,
    ) -> None:
        self._registry = registry
        self._service = service
        self._payloads = payloads
        self._turns = turns
        self._binder = ScopeBinder() if binder is None else binder

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
        """Pause the run and return its event, which may be shown once this returns.

        In order: registration, shape of the request, its key, its checkpoint, the token, the recorded request,
        the recorded turn. Whatever is refused is refused before the token, so that a failed pause leaves
        nothing outstanding. Raises UnknownInteractionError, PayloadBindingError, ScopeBindingError,
        InteractionConfigurationError, PauseCheckpointNotFoundError, TokenTTLError, and what the ledger raises.
        """
        registration = self._registry.get(name)
        shown, body = self._check_payload(registration, payload)
        interrupt_id = interrupt_id_for(name, interrupt_id)
        payload_key(name=name, tool_call_id=tool_call_id, interrupt_id=interrupt_id)
        pause = await self._service.mint(
            await self._place(binding),
            request_body=body,
            name=name,
            tool_call_id=tool_call_id,
            interrupt_id=interrupt_id,
            ttl_seconds=ttl_seconds,
            legacy_pinned=legacy_pinned,
        )
        return InteractionEvent(
            name=name,
            payload=shown,
            pause=pause,
            run_id=binding.run_id,
            session_id=binding.session_id,
            interrupt_id=interrupt_id,
            tool_call_id=tool_call_id,
            resumable=await self._record(pause, body, turn_state),
        )

    async def _place(self, binding: PauseBinding) -> PauseBinding:
        """Return the binding with its thread and checkpoint; the run's own statement comes first."""
        thread_id = binding.thread_id or thread_id_for(binding.scope, binding.session_id)
        checkpoint_id = binding.checkpoint_id or await self._payloads.resolve_checkpoint_id(thread_id)
        if not checkpoint_id:
            raise PauseCheckpointNotFoundError("no checkpoint of this thread can be resolved to pause at")
        return replace(binding, thread_id=thread_id, checkpoint_id=checkpoint_id)

    def _check_payload(self, registration: InteractionRegistration, payload: Any) -> tuple[Any, str]:
        body = self._binder.request_body(payload)
        try:
            # The shape must fit what will be read back, which is the text, not only what was handed in.
            shown = registration.payload_schema.model_validate(parse_json(body))
        except Exception as error:
            # The cause is not chained: a schema's error quotes what it was given.
            misfit = describe_misfit(error)
            raise PayloadBindingError(f"the request does not fit {registration.name!r}: {misfit}") from None
        return shown, body

    async def _record(self, pause: MintedPause, body: str, turn_state: TurnCheckpoint | None) -> bool:
        """Record request and turn; without either, another process could not go on, so the pause is not resumable."""
        request_recorded = await self._payloads.record_body(pause.claims, body)
        if turn_state is None:
            return False
        return await self._turns.record(pause.claims, turn_state) and request_recorded
