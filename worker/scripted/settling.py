"""Settle one pending action of the scripted runtime through Cayu's own exact-action calls.

| verb               | kind              | the reference becomes |
|--------------------|-------------------|-----------------------|
| answer             | user_input        | resolved              |
| approve, deny      | tool_approval     | resolved, cancelled   |
| expire             | tool_approval     | expired, once its deadline is past: approving makes the runtime commit it |
| interrupt          | user_input        | superseded            |
| recover-completed  | manual_recovery   | resolved              |
| recover-failed     | manual_recovery   | unavailable for good in Cayu 0.15 |
"""

from datetime import UTC, datetime
from typing import Any, Literal

from cayu import CayuApp
from cayu.approvals import (
    ResolutionActor,
    ResolutionActorSource,
    ToolApprovalDecision,
    ToolApprovalRequest,
    UserInputResponse,
)
from cayu.events import Event
from cayu.runtime import HumanAttentionRequest, ToolEffectReceipt, ToolEffectReconciliationRequest
from cayu.sessions import InterruptSessionRequest, PendingActionQuery

from worker.scripted.runtime import drain

Verb = Literal["answer", "approve", "deny", "expire", "interrupt", "recover-completed", "recover-failed"]


def actor() -> ResolutionActor:
    """Return the person who settles."""
    return ResolutionActor(subject="alice@example.com", source=ResolutionActorSource.REQUEST)


async def current_action(store: Any, session_id: str) -> Any:
    """Return the session's pending action (a delegated parent's child's), or None."""
    page = await store.query_pending_actions(PendingActionQuery(session_id=session_id))
    while page.actions and page.actions[0].delegated_action is not None:
        child_id = page.actions[0].delegated_action.child_session_id
        page = await store.query_pending_actions(PendingActionQuery(session_id=child_id))
    return page.actions[0] if page.actions else None


async def reference_of(store: Any, session_id: str) -> Any:
    """Return the exact reference of the session's pending action; an AssertionError where nothing is pending."""
    action = await current_action(store, session_id)
    request = HumanAttentionRequest.from_pending_action(action) if action is not None else None
    assert request is not None, f"nothing is pending in {session_id}"
    return request.reference


async def settle(app: CayuApp, action: Any, verb: Verb, *, text: str = "eu") -> list[Event]:
    """Settle `action` in a process that has the agents; return the events of the continued run."""
    match verb:
        case "answer":
            return await _answer(app, action, text)
        case "approve" | "deny" | "expire":
            return await _decide(app, action, approve=verb != "deny")
        case "interrupt":
            request = InterruptSessionRequest(session_id=action.session.id, reason="operator", requested_by=actor())
            return await drain(app.interrupt_session(request))
        case "recover-completed":
            return await _recover(app, action, "completed")
        case "recover-failed":
            return await _recover(app, action, "failed")


async def _answer(app: CayuApp, action: Any, text: str) -> list[Event]:
    response = UserInputResponse(
        session_id=action.session.id, input_id=action.input_id, answer=text, resolved_by=actor()
    )
    return await drain(app.resolve_user_input(response))


async def _decide(app: CayuApp, action: Any, *, approve: bool) -> list[Event]:
    request = ToolApprovalRequest(
        session_id=action.session.id,
        approval_id=action.approval_id,
        tool_round_id=action.round_id,
        tool_call_id=action.tool_call_id,
        decision=ToolApprovalDecision.APPROVE if approve else ToolApprovalDecision.DENY,
        reason="because",
        resolved_by=actor(),
    )
    return await drain(app.resolve_tool_approval(request))


async def _recover(app: CayuApp, action: Any, outcome: Literal["completed", "failed"]) -> list[Event]:
    # The public `inspect_tool_effect` wants a PublicAuthorityAliasKeyring; this reads the same target.
    target = await app._recovery_coordinator.inspect_tool_effect_target(
        session_id=action.session.id, tool_round_id=action.round_id, tool_call_id=action.tool_call_id
    )
    receipt = ToolEffectReceipt(
        receipt_id="r-1",
        receipt_schema="deploy.receipt",
        receipt_schema_version=1,
        tool_call_id=target.tool_call_id,
        idempotency_key=target.idempotency_key,
        tool_name=target.tool_name,
        outcome=outcome,
        message="verified out of band",
        structured={"ok": outcome == "completed"},
        observed_at=datetime.now(UTC),
        source="operator",
    )
    return await drain(
        app.reconcile_tool_effect(ToolEffectReconciliationRequest(**target.model_dump(), receipt=receipt))
    )
