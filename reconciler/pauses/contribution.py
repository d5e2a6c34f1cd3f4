"""What the capability adds to a run: a stage that takes a model's call before any tool runs, and the tools' specs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .claims import ASK_USER
from .errors import InteractionConfigurationError
from .turnstate import TurnCheckpoint
from .values import InteractionEvent, InteractionToolSpec


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model made, before it runs; `turn_state` is the turn to go on from after the answer."""

    name: str
    arguments: Mapping[str, Any] = field(repr=False)
    call_id: str
    turn_state: TurnCheckpoint | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TakenPause:
    """A pause that was taken instead of a call, and its token as it travels; the token is not for the model."""

    event: InteractionEvent
    token: str = field(repr=False)


PauseTaker = Callable[[ToolCall], Awaitable[TakenPause]]


@dataclass(frozen=True, slots=True)
class PreToolStage:
    """Runs before the tools: takes the calls of the registered names and leaves every other."""

    names: tuple[str, ...]
    take: PauseTaker

    async def __call__(self, call: ToolCall) -> TakenPause | None:
        """Pause the run where the call is an interaction; None lets the call go on to its tool."""
        return await self.take(call) if call.name in self.names else None


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one capability adds to one run. `effects` stays empty: a pause has no effect on the outside."""

    name: str
    pre_tool_stage: PreToolStage | None = None
    tools: tuple[InteractionToolSpec, ...] = ()
    effects: tuple[str, ...] = ()


def contribution_of(capability_name: str, names: tuple[str, ...], take: PauseTaker) -> Contribution:
    """Return the stage and one tool for each name."""
    return Contribution(capability_name, PreToolStage(names, take), tuple(_tool_of(name) for name in names))


def _tool_of(name: str) -> InteractionToolSpec:
    async def refuse(**_arguments: Any) -> Any:
        # A person's answer cannot be computed: reached only in a runtime that skipped the stage.
        raise InteractionConfigurationError(f"{name!r} pauses the run before tools; it cannot be run as one")

    if name == ASK_USER:
        return InteractionToolSpec(name, "Ask a person and wait for the answer.", refuse, ("question",))
    return InteractionToolSpec(name, f"Pause for a person: {name}.", refuse)
