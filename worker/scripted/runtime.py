"""A credential-free Cayu 0.15 application whose scripted agents pause in every way that needs a person.

A process that *resolves* a pause must register the same agents, tools and policies as the one that paused
(resolution re-enters the model loop), hence the portable identities; a process that only observes needs none
of it: `make_app(store, agents=False)`. A pause costs about 0.7 s of CPU. Every text that a notification must
never carry contains `CONTENT_MARK`.
"""

import inspect
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal

from cayu import (
    AgentSpec,
    CayuApp,
    Message,
    RunRequest,
    Tool,
    ToolContext,
    ToolEffect,
    ToolResult,
    ToolSpec,
)
from cayu.evals import ScriptedModelProvider
from cayu.events import Event
from cayu.human_attention_handoff import HumanAttentionHandoff
from cayu.messages import MessageRole
from cayu.observability import EventSink
from cayu.providers import ModelStreamEvent
from cayu.runtime import (
    ExecutionProfileBehaviorIdentity,
    ToolEffectReconcilerSpec,
    ToolEffectReconciliationRegistration,
    ToolEffectReconciliationResult,
)
from cayu.storage import SQLiteSessionStore
from cayu.storage.migrations import SchemaMode
from cayu.tools import (
    SubagentSpec,
    SubagentTool,
    ToolPolicy,
    ToolPolicyDecision,
    ToolPolicyRequest,
    ToolPolicyResult,
    UserInputTool,
)

Kind = Literal[
    "user_input",
    "tool_approval",
    "tool_approval_expiring",
    "manual_recovery",
    "delegated_action",
    "nested_delegated_action",
]
KINDS: tuple[Kind, ...] = (
    "user_input",
    "tool_approval",
    "tool_approval_expiring",
    "manual_recovery",
    "delegated_action",
)
PROMPTS: dict[Kind, str] = {
    "user_input": "ask",
    "tool_approval": "approve",
    "manual_recovery": "crash",
    "delegated_action": "delegate",
    "nested_delegated_action": "nest",
}
CONTENT_MARK = "SENSITIVE-do-not-notify"


def ident(name: str) -> ExecutionProfileBehaviorIdentity:
    """Return a portable identity, which lets another process resume the session."""
    return ExecutionProfileBehaviorIdentity(name=name, behavior_version="1", implementation_version="1")


class DeployTool(Tool):
    """A tool with an outside effect; target `crash` raises, which is an unknown outcome: manual recovery."""

    spec = ToolSpec(
        name="deploy",
        description="Deploy a build.",
        input_schema={
            "type": "object",
            "properties": {"target": {"type": "string"}},
            "required": ["target"],
            "additionalProperties": False,
        },
        effect=ToolEffect.EXTERNAL,
        parallel_safe=False,
        max_terminal_payload_bytes=4096,
        execution_profile_identity=ident("deploy-tool"),
    )

    async def run(self, ctx: ToolContext, args: dict[str, Any]) -> ToolResult:
        """Deploy, or lose the connection on the way."""
        if args["target"] == "crash":
            raise RuntimeError(f"connection lost {CONTENT_MARK}")
        return ToolResult(content=f"deployed {args['target']}", structured={"ok": True})


class ReceiptReconciler:
    """Believes the operator's receipt; `recover_tool_round` refuses an EXTERNAL tool without a reconciler."""

    async def reconcile(self, *, context: Any, receipt: Any) -> ToolEffectReconciliationResult:
        """Settle by the receipt where there is one."""
        if receipt is None:
            return ToolEffectReconciliationResult(outcome="not_found", observation="outcome_unknown", retryable=True)
        return ToolEffectReconciliationResult(
            outcome=receipt.outcome,
            receipt=receipt,
            observation="sent" if receipt.outcome == "completed" else "not_sent",
        )


def reconcilers() -> dict[str, ToolEffectReconciliationRegistration]:
    """Return the reconciler of each tool that needs one."""
    spec = ToolEffectReconcilerSpec(
        execution_profile_identity=ident("deploy-reconciler"),
        receipt_schema="deploy.receipt",
        receipt_schema_version=1,
        supports_lookup=True,
        result_schema={"type": "object", "properties": {"ok": {"type": "boolean"}}, "additionalProperties": False},
    )
    return {"deploy": ToolEffectReconciliationRegistration(reconciler=ReceiptReconciler(), spec=spec)}


class ApprovalPolicy(ToolPolicy):
    """Every deployment needs approval but `crash`; a target `expiring:SECONDS` has a deadline."""

    @property
    def execution_profile_identity(self) -> ExecutionProfileBehaviorIdentity:
        """Name the policy across processes."""
        return ident("approval-policy")

    async def authorize(self, request: ToolPolicyRequest) -> ToolPolicyResult:
        """Ask a person before a deployment."""
        target = (request.arguments or {}).get("target", "")
        if request.tool_name != "deploy" or target == "crash":
            return ToolPolicyResult(decision=ToolPolicyDecision.ALLOW)
        ttl_seconds = float(target.split(":", 1)[1]) if target.startswith("expiring:") else None
        return ToolPolicyResult(
            decision=ToolPolicyDecision.REQUIRE_APPROVAL,
            reason=f"deploy to {target} needs a human {CONTENT_MARK}",
            approval_expires_in_seconds=ttl_seconds,
        )


class Provider(ScriptedModelProvider):
    """The scripted model; without a declared identity no other process could answer its pauses."""

    @property
    def execution_profile_identity(self) -> ExecutionProfileBehaviorIdentity:
        """Name the provider across processes."""
        return ident("fixture-provider")


def respond(request: Any) -> list[ModelStreamEvent]:
    """Call the tool that the user's message names, then finish with text."""
    if any(message.role == MessageRole.TOOL for message in request.messages):
        return [ModelStreamEvent.text_delta("done"), ModelStreamEvent.completed()]
    text = _last_user_text(request)
    for prefix, tool, arguments in _script(text):
        if text.startswith(prefix):
            return [
                ModelStreamEvent.tool_call(id=f"call-{tool}", name=tool, arguments=arguments),
                ModelStreamEvent.completed({"finish_reason": "tool_calls"}),
            ]
    return [ModelStreamEvent.text_delta("hello"), ModelStreamEvent.completed()]


def _script(text: str) -> tuple[tuple[str, str, dict[str, Any]], ...]:
    return (
        ("ask", "ask_user", {"question": f"Which region? {CONTENT_MARK}", "options": ["eu", "us"]}),
        ("approve", "deploy", {"target": "prod"}),
        ("expiring", "deploy", {"target": text}),
        ("crash", "deploy", {"target": "crash"}),
        ("delegate", "subagent", {"agent": "worker", "task": "ask the user"}),
        ("nest", "subagent", {"agent": "parent", "task": "delegate"}),
    )


def _last_user_text(request: Any) -> str:
    for message in reversed(request.messages):
        if message.role == MessageRole.USER:
            return "".join(getattr(part, "text", "") or "" for part in message.content)
    return ""


def open_store(target: str, *, read_only: bool = False, migrate: bool = False, **options: Any) -> Any:
    """Open a session store: `target` is a SQLite path or a postgresql:// URL; `options` go to its constructor."""
    if target.startswith(("postgres://", "postgresql://")):
        from cayu.storage import PostgresSessionStore

        mode = SchemaMode.MIGRATE if migrate else SchemaMode.VALIDATE
        return PostgresSessionStore(target, schema_mode=mode, read_only=read_only, **options)
    if read_only:
        return SQLiteSessionStore(target, schema_mode=SchemaMode.VALIDATE, read_only=True, **options)
    return SQLiteSessionStore(target, **options)


def make_app(
    store: Any,
    *,
    sinks: Sequence[EventSink] = (),
    handoff: HumanAttentionHandoff | None = None,
    agents: bool = True,
    **options: Any,
) -> CayuApp:
    """Make an application on `store`: with the agents that pause, or (`agents=False`) one that only observes.

    A CayuApp attaches a handoff from the environment by itself; this one refuses it unless one is given.
    """
    app = CayuApp(
        session_store=store,
        enable_logging=False,
        event_sinks=list(sinks),
        human_attention_handoff=handoff or HumanAttentionHandoff(None),
        **options,
    )
    if agents:
        _register_agents(app)
    return app


def _register_agents(app: CayuApp) -> None:
    app.register_provider(Provider(response_factory=respond), default=True)
    app.register_agent(
        AgentSpec(name="worker", model="scripted", system_prompt="s"),
        tools=[UserInputTool(), DeployTool()],
        tool_policy=ApprovalPolicy(),
        tool_effect_reconcilers=reconcilers(),
    )
    for agent, child in (("parent", "worker"), ("grandparent", "parent")):
        subagent = SubagentTool(
            app,
            agents={child: SubagentSpec(agent_name=child, description="asks")},
            execution_profile_identity=ident(f"subagent-{child}"),
        )
        app.register_agent(AgentSpec(name=agent, model="scripted", system_prompt="s"), tools=[subagent])


def request_for(
    kind: Kind,
    session_id: str,
    *,
    ttl_seconds: float = 1.0,
    labels: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> RunRequest:
    """Return the run that ends in a pause of `kind`."""
    prompt = f"expiring:{ttl_seconds}" if kind == "tool_approval_expiring" else PROMPTS[kind]
    return RunRequest(
        agent_name={"delegated_action": "parent", "nested_delegated_action": "grandparent"}.get(kind, "worker"),
        session_id=session_id,
        messages=[Message.text("user", prompt)],
        labels=dict(labels or {}),
        metadata=dict(metadata or {}),
        max_steps=8,
    )


async def pause(app: CayuApp, kind: Kind, session_id: str, **options: Any) -> list[Event]:
    """Run one session until it pauses; return the events it gave. `options` are those of `request_for`."""
    return await drain(app.run(request_for(kind, session_id, **options)))


async def drain(stream: AsyncIterator[Event]) -> list[Event]:
    """Read a run or a resolution to its end."""
    async with aclosing(stream) as events:  # type: ignore[type-var]  # Cayu's streams are generators, typed wider
        return [event async for event in events]


async def close_store(store: Any) -> None:
    """Close a store whose `close` may or may not be a coroutine."""
    result = store.close()
    if inspect.isawaitable(result):
        await result
