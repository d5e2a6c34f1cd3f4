"""The capability as a runtime sees it."""

import inspect
from typing import Any

import pytest

from reconciler.pauses import (
    DEFAULT_TTL,
    ConsumptionDurabilityError,
    HumanInteractionCapability,
    InMemoryConsumption,
    InteractionConfigurationError,
    PauseBinding,
    PausePayloadStore,
    PauseTokenService,
    TokenIssuanceLedger,
    ToolCall,
    TurnCheckpointStore,
    ask_user_registration,
    human_interaction,
)
from tests.contract.pause_tokens.kit import (
    QUESTION,
    TURN,
    Checkpoints,
    Clock,
    JwsSigner,
    Pin,
    Rig,
    Scope,
    approval,
    encode_token,
)


def build(**options: Any) -> HumanInteractionCapability:
    usual: dict[str, Any] = {
        "signer": JwsSigner(),
        "binding": lambda _request: PauseBinding(pin=Pin(), scope=Scope(), run_id="r", session_id="s"),
        "encode_token": encode_token,
    }
    return human_interaction(**(usual | options))


@pytest.mark.statement("S19", "S93")
@pytest.mark.parametrize(
    "decider",
    [{"consumption": InMemoryConsumption()}, {"ledger": TokenIssuanceLedger(maximum_ttl_seconds=60)}, {}],
    ids=["consumption", "ledger", "neither"],
)
def test_durable_pauses_beside_volatile_redemptions_are_refused_at_start(decider: dict[str, Any]) -> None:
    with pytest.raises(ConsumptionDurabilityError):
        build(checkpoints=Checkpoints(durable=True), **decider)
    build(checkpoints=Checkpoints(durable=True), require_durable=False, **decider)


@pytest.mark.statement("S94")
async def test_a_capability_contributes_only_what_it_could_carry_out() -> None:
    compiled = HumanInteractionCapability.compile(
        (),
        signer=JwsSigner(),
        ttl=DEFAULT_TTL,
        consumption=InMemoryConsumption(),
        binding=None,
        encode_token=encode_token,
    )
    lacking = [compiled, build(binding=None), build(encode_token=None)]

    for capability in lacking:
        contribution = capability.contribute(None)
        assert (contribution.name, contribution.pre_tool_stage, contribution.tools) == (capability.name, None, ())
    assert [capability.active for capability in lacking] == [False, True, True]
    assert build(registrations=(ask_user_registration(), approval())).names() == ("approval", "ask_user")


@pytest.mark.statement("S95")
async def test_the_defaults_are_one_question_ten_minutes_and_memory() -> None:
    capability = build(checkpoints=Checkpoints(), clock=Clock())
    event = await capability.pause(
        "ask_user",
        QUESTION,
        binding=PauseBinding(scope=Scope(), run_id="r", session_id="s", checkpoint_id="c"),
        tool_call_id="t",
    )

    assert capability.names() == ("ask_user",)
    assert capability.registry.get("ask_user").cross_scope_allowed is False
    assert isinstance(capability.service.consumption, InMemoryConsumption)
    assert event.pause.claims.exp - int(event.pause.claims.issued_at) == DEFAULT_TTL.default_seconds
    with pytest.raises(InteractionConfigurationError):
        build(registrations=())


@pytest.mark.statement("S97")
async def test_a_wholly_volatile_deployment_pauses_and_resumes() -> None:
    for decider in ({}, {"ledger": TokenIssuanceLedger(maximum_ttl_seconds=86_400, clock=Clock())}):
        rig = Rig(checkpoints=Checkpoints())
        rig.capability = build(checkpoints=rig.checkpoints, clock=rig.clock, **decider)
        rig.service = rig.capability.service

        assert await rig.is_redeemable(await rig.ask())


@pytest.mark.statement("S97")
def test_the_mode_is_the_kind_of_record_that_decides(rig: Rig) -> None:
    assert rig.service.operated is (rig.mode == "operated")


@pytest.mark.statement("S104")
async def test_a_contribution_is_a_stage_before_tools_and_the_tools_specs(rig: Rig) -> None:
    contribution = rig.capability.contribute(request=None)
    stage = contribution.pre_tool_stage
    assert stage is not None

    taken = await stage(ToolCall("ask_user", QUESTION, "call-1", TURN))

    assert contribution.effects == ()
    assert [tool.name for tool in contribution.tools] == ["approval", "ask_user"]
    assert contribution.tools[1].parameters == ("question",)
    assert taken is not None
    assert (taken.event.tool_call_id, taken.event.resumable) == ("call-1", True)
    assert taken.token == taken.event.pause.envelope.token
    assert taken.token not in repr(taken)
    assert await stage(ToolCall("search", {}, "call-2")) is None


@pytest.mark.statement("S104")
async def test_a_tool_that_is_run_in_spite_of_the_stage_refuses(rig: Rig) -> None:
    tool = rig.capability.contribute(None).tools[1]

    with pytest.raises(InteractionConfigurationError):
        await tool.coroutine(question="x")
    assert rig.signer.minted == 0


@pytest.mark.statement("S37", "S104")
async def test_the_binding_is_resolved_for_each_run_and_may_be_async() -> None:
    async def resolve(request: str) -> PauseBinding:
        return PauseBinding(pin=Pin(), scope=Scope(), run_id=request, session_id="s", checkpoint_id="c")

    capability = build(binding=resolve, checkpoints=Checkpoints())
    runs = []
    for request in ("r-1", "r-2"):
        stage = capability.contribute(request).pre_tool_stage
        assert stage is not None
        taken = await stage(ToolCall("ask_user", QUESTION, "call-1"))
        assert taken is not None
        runs.append(taken.event.run_id)

    assert runs == ["r-1", "r-2"]


@pytest.mark.statement("S105")
def test_compile_takes_the_documented_parts() -> None:
    parameters = inspect.signature(HumanInteractionCapability.compile).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items() if name != "clock"}
    required = inspect.Parameter.empty

    assert defaults == {
        "registrations": required, "signer": required, "ttl": required, "consumption": None, "ledger": None,
        "checkpoints": None, "pinless_policy": None, "audit": None, "require_durable": True, "binding": None,
        "encode_token": None, "decode_token": None,
    }  # fmt: skip


@pytest.mark.statement("S105")
def test_a_capability_built_without_turns_has_an_empty_store_of_them(rig: Rig) -> None:
    service = PauseTokenService(JwsSigner(), consumption=InMemoryConsumption())
    capability = HumanInteractionCapability(
        registry=rig.capability.registry, service=service, payloads=PausePayloadStore()
    )
    turns = TurnCheckpointStore()

    assert capability.turns.wired is False
    assert rig.capability.turns.wired is True
    assert (
        HumanInteractionCapability(
            registry=rig.capability.registry, service=service, payloads=PausePayloadStore(), turns=turns
        ).turns
        is turns
    )


@pytest.mark.statement("S105")
async def test_the_pinless_policy_reaches_the_signer(rig: Rig) -> None:
    seen: list[Any] = []

    class Watching(JwsSigner):
        def verify(self, envelope: Any, *, pinless_policy: Any, schema_id: str) -> Pin:
            seen.append((pinless_policy, schema_id))
            return super().verify(envelope, pinless_policy=pinless_policy, schema_id=schema_id)

    event = await rig.ask()
    build(signer=Watching(), pinless_policy="strict", clock=rig.clock).service.authenticate(event.pause.envelope)

    assert seen == [("strict", PauseTokenService.SCHEMA_ID)]


@pytest.mark.statement("S103")
async def test_the_signer_is_asked_by_the_documented_names(rig: Rig) -> None:
    calls: list[dict[str, Any]] = []

    class Watching(JwsSigner):
        def mint(self, **arguments: Any) -> Any:
            calls.append(arguments)
            return super().mint(**arguments)

    service = PauseTokenService(Watching(), consumption=InMemoryConsumption(), clock=rig.clock)
    minted = await service.mint(rig.binding(thread_id="t", checkpoint_id="c"), request_body="{}")

    assert calls == [{"pin": Pin(), "payload": minted.claims.encode(), "schema_id": PauseTokenService.SCHEMA_ID}]
    assert minted.envelope.payload == minted.claims.encode()


@pytest.mark.statement("S106")
async def test_without_a_decoder_pauses_are_taken_and_their_tokens_not_read_back(rig: Rig) -> None:
    event = await rig.ask()
    envelope = rig.capability.read_token(encode_token(event.pause.envelope))
    assert rig.service.authenticate(envelope).claims == event.pause.claims

    capability = build(checkpoints=Checkpoints())
    stage = capability.contribute(None).pre_tool_stage
    assert stage is not None
    with pytest.raises(InteractionConfigurationError):
        capability.read_token(encode_token(event.pause.envelope))
    assert "decode_token" in (HumanInteractionCapability.__doc__ or "")
