"""What the demo plays: four requests, how each is settled, and the state that each must end in."""

from dataclasses import dataclass
from typing import Literal

from reconciler.states import AttentionState


@dataclass(frozen=True, slots=True)
class Scene:
    """One session of the agent: how it pauses, how a person settles it, what Handbell must show then."""

    session_id: str
    title: str
    kind: Literal["user_input", "tool_approval", "manual_recovery"]
    verb: Literal["answer", "interrupt", "deny", "recover-completed"]
    deed: str
    ends: AttentionState


SCENES = (
    Scene("demo-question-1", "asks which region", "user_input", "answer", "answered", AttentionState.RESOLVED),
    Scene("demo-question-2", "asks which region", "user_input", "interrupt", "interrupted", AttentionState.SUPERSEDED),
    Scene("demo-approval", "wants to deploy", "tool_approval", "deny", "denied", AttentionState.CANCELLED),
    Scene(
        "demo-recovery",
        "lost a deployment midway",
        "manual_recovery",
        "recover-completed",
        "reconciled by receipt",
        AttentionState.RESOLVED,
    ),
)
