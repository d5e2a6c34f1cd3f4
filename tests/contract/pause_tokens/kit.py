"""A small deployment to pause and resume in: a clock that is set, a real signer, stores that can fail."""

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

import jwt

from reconciler.pauses import (
    BackendIssuanceRecords,
    ConditionalWriteConsumption,
    CrossScopeRedemption,
    HumanInteractionCapability,
    InMemoryCheckpoints,
    InteractionEvent,
    InteractionRegistration,
    PauseBinding,
    PauseClaims,
    PauseTokenService,
    ResumeCommand,
    ResumeOutcome,
    TokenIssuanceLedger,
    TTLPolicy,
    TurnCheckpoint,
    ask_user_registration,
    human_interaction,
    thread_id_for,
)

Mode = Literal["library", "operated"]
MODES: tuple[Mode, ...] = ("library", "operated")

START = 1_760_000_000.25
QUESTION = {"question": "Deploy to production?"}
ANSWER = {"answer": "Yes"}
TURN = TurnCheckpoint(prompt="deploy", messages=({"role": "user", "text": "é"},))
TTL = TTLPolicy(default_seconds=600, maximum_seconds=86_400)


class Clock:
    """Epoch seconds that move only when told to; counts its readings."""

    def __init__(self, now: float = START) -> None:
        self.now = now
        self.readings = 0

    def __call__(self) -> float:
        self.readings += 1
        return self.now


@dataclass(frozen=True)
class Scope:
    """A scope as a runtime has one."""

    tenant_id: str | None = "acme"
    sub_tenant_id: str | None = None
    namespace: str | None = None


@dataclass(frozen=True)
class Pin:
    """What a signer hands out for one invocation."""

    vector_hash: str = "v-1"


@dataclass(frozen=True)
class Envelope:
    """A signed body."""

    token: str
    payload: bytes
    schema_id: str


class JwsSigner:
    """HS256 over the canonical bytes, for tests; `down` is a keyset that cannot be reached."""

    def __init__(self, key: bytes = b"k" * 32) -> None:
        self.key = key
        self.down = False
        self.verified = 0
        self.minted = 0
        self._jws = jwt.PyJWS()

    def mint(self, *, pin: Any, payload: bytes, schema_id: str) -> Envelope:
        self.minted += 1
        return self.sign(payload, schema_id)

    def sign(self, payload: bytes, schema_id: str = PauseTokenService.SCHEMA_ID, key: bytes | None = None) -> Envelope:
        token = self._jws.encode(payload, key or self.key, algorithm="HS256", headers={"typ": schema_id})
        return Envelope(token, payload, schema_id)

    def verify(self, envelope: Any, *, pinless_policy: Any, schema_id: str) -> Pin:
        self.verified += 1
        if self.down:
            raise KeysetDownError
        body = self._jws.decode(envelope.token, self.key, algorithms=["HS256"])
        if body != envelope.payload:
            raise ValueError("the body is not the signed one")
        return Pin()


class KeysetDownError(Exception):
    """The keys cannot be asked."""

    code = "keyset_unavailable"


def encode_token(envelope: Envelope) -> str:
    return envelope.token


def decode_token(token: str) -> Envelope:
    header = jwt.get_unverified_header(token)
    return Envelope(token, jwt.PyJWS().decode(token, options={"verify_signature": False}), header["typ"])


class Store:
    """A conditional-write store that can be read and listed; `failing` makes its next write raise."""

    def __init__(self, *, durable: bool | None = True) -> None:
        self.rows: dict[str, Any] = {}
        self.calls: list[str] = []
        self.failing = False
        if durable is not None:
            self.durable = durable

    async def insert_if_absent(self, key: str, record: object) -> bool:
        self.calls.append(f"insert {key}")
        if self.failing:
            raise ConnectionError("the store is down")
        return self.rows.setdefault(key, record) is record

    async def read(self, key: str) -> Any:
        self.calls.append(f"read {key}")
        return self.rows.get(key)

    async def scan(self, prefix: str) -> list[Any]:
        self.calls.append(f"scan {prefix}")
        return [row for key, row in self.rows.items() if key.startswith(prefix)]


class Checkpoints(InMemoryCheckpoints):
    """Checkpoints that can be told to fail and that say what was asked of them."""

    def __init__(self, *, durable: bool = False) -> None:
        super().__init__()
        self.durable = durable
        self.failing_keys: tuple[str, ...] = ()
        self.failure: Exception = ConnectionError("checkpoints are down")
        self.writes: list[dict[str, str]] = []
        self.reads = 0

    async def read_metadata(self, *, thread_id: str, checkpoint_id: str, key: str) -> str | None:
        self.reads += 1
        return await super().read_metadata(thread_id=thread_id, checkpoint_id=checkpoint_id, key=key)

    async def write_metadata(self, *, thread_id: str, checkpoint_id: str, key: str, value: str, task_id: str) -> None:
        if key.startswith(self.failing_keys or "\0"):
            raise self.failure
        self.writes.append(
            {"thread_id": thread_id, "checkpoint_id": checkpoint_id, "key": key, "value": value, "task_id": task_id}
        )
        await super().write_metadata(
            thread_id=thread_id, checkpoint_id=checkpoint_id, key=key, value=value, task_id=task_id
        )

    async def put(self, key: str, value: str) -> None:
        """Replace one record of the usual pause, behind the capability's back."""
        await super().write_metadata(thread_id="acme:_:s-1", checkpoint_id="cp-1", key=key, value=value, task_id="")

    async def restore(self) -> None:
        """Put back everything as the capability wrote it."""
        for write in self.writes:
            await self.put(write["key"], write["value"])


class Rig:
    """One deployment: everything that a test may want to look at or to break."""

    def __init__(
        self,
        *,
        mode: Mode = "library",
        registrations: tuple[InteractionRegistration, ...] | None = None,
        checkpoints: Checkpoints | None = None,
        **options: Any,
    ) -> None:
        self.mode = mode
        self.clock = Clock()
        self.signer = JwsSigner()
        self.store = Store()
        self.checkpoints = Checkpoints(durable=True) if checkpoints is None else checkpoints
        self.audited: list[CrossScopeRedemption] = []
        self.ledger: TokenIssuanceLedger | None = None
        self.scope = Scope()
        if mode == "operated":
            self.ledger = TokenIssuanceLedger(
                maximum_ttl_seconds=TTL.maximum_seconds, clock=self.clock, records=BackendIssuanceRecords(self.store)
            )
            decider: dict[str, Any] = {"ledger": self.ledger}
        else:
            decider = {"consumption": ConditionalWriteConsumption(self.store, clock=self.clock)}
        self.capability: HumanInteractionCapability = human_interaction(
            signer=self.signer,
            binding=lambda _request: self.binding(),
            encode_token=encode_token,
            decode_token=decode_token,
            registrations=registrations or (ask_user_registration(), approval()),
            ttl=TTL,
            checkpoints=self.checkpoints,
            clock=self.clock,
            audit=self.audited.append,
            **decider,
            **options,
        )
        self.service = self.capability.service
        self.checkpoints.set_current(thread_id_for(self.scope, "s-1"), "cp-1")

    def binding(self, **changes: Any) -> PauseBinding:
        usual = PauseBinding(pin=Pin(), scope=self.scope, run_id="r-1", session_id="s-1")
        return replace(usual, **changes)

    async def ask(
        self, *, call: str = "call-1", turn: TurnCheckpoint | None = TURN, **changes: Any
    ) -> InteractionEvent:
        """Pause on a question."""
        return await self.capability.pause(
            "ask_user", QUESTION, binding=self.binding(**changes), tool_call_id=call, turn_state=turn
        )

    async def answer(self, event: InteractionEvent, *, require_turn: bool = True, **changes: Any) -> ResumeOutcome:
        """Answer it, from where it belongs unless told otherwise."""
        usual = ResumeCommand(
            envelope=event.pause.envelope,
            response=ANSWER,
            scope=self.scope,
            session_id=event.session_id,
            run_id=event.run_id,
            call_id=event.tool_call_id or event.interrupt_id,
        )
        return await self.capability.resume(replace(usual, **changes), require_turn=require_turn)

    async def is_redeemable(self, event: InteractionEvent) -> bool:
        """Say whether the token is still good, by redeeming it."""
        outcome = await self.answer(event, require_turn=False)
        return bool(outcome.response.answer == "Yes")

    def resigned(self, claims: PauseClaims, **changes: Any) -> Envelope:
        """Return a genuinely signed envelope whose claims were changed first."""
        body = json.loads(claims.encode())
        body.update(changes)
        return self.signer.sign(json.dumps({k: v for k, v in body.items() if v is not ...}).encode())


class AnySchema:
    """A shape that takes anything with the wanted keys."""

    def __init__(self, *keys: str) -> None:
        self.keys = keys

    def model_validate(self, obj: Any) -> Any:
        if not isinstance(obj, dict) or set(obj) != set(self.keys):
            raise ValueError(f"SECRET {obj}")
        return obj


def approval(**changes: Any) -> InteractionRegistration:
    """A second interaction, with an interrupt id instead of a call id."""
    usual: dict[str, Any] = {
        "name": "approval",
        "payload_schema": AnySchema("amount"),
        "response_schema": AnySchema("approved"),
    }
    return InteractionRegistration(**(usual | changes))


def claims(**changes: Any) -> PauseClaims:
    """A set of claims."""
    usual: dict[str, Any] = {
        "run_id": "r-1",
        "session_id": "s-1",
        "scope_hash": "90f54e1caf436719",
        "thread_id": "acme:_:s-1",
        "checkpoint_id": "cp-1",
        "request_hash": "0" * 64,
        "exp": 1_760_000_600,
        "jti": "a" * 32,
        "root_run_id": "r-0",
        "tool_call_id": "call-1",
        "issued_at": START,
    }
    return PauseClaims(**(usual | changes))
