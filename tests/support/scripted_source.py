"""A source that says what a test tells it to, and counts what it was asked."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

from config.clock import Clock
from reconciler.references import Observation, Reference, Request
from reconciler.states import AttentionState, Evidence, Kind

TERMINAL_EVIDENCE = {
    AttentionState.ACTIVE: Evidence.CURRENT_ACTION,
    AttentionState.UNAVAILABLE: Evidence.STORE_UNAVAILABLE,
    AttentionState.RESOLVED: Evidence.DURABLE_CLOSURE,
    AttentionState.CANCELLED: Evidence.DURABLE_CLOSURE,
    AttentionState.SUPERSEDED: Evidence.DURABLE_SUPERSESSION,
    AttentionState.EXPIRED: Evidence.DURABLE_CLOSURE,
}


def reference_of(name: str) -> Reference:
    """Return a reference whose attention id is `name`."""
    return Reference(name, f"session-{name}", "1", Kind.TOOL_APPROVAL, f"action-{name}")


def observed(name: str, state: AttentionState, at: datetime, request: Request | None = None) -> Observation:
    """Return an observation of the request `name`."""
    return Observation(reference_of(name), state, TERMINAL_EVIDENCE[state], at, request)


class ScriptedSource:
    """Observes references; each is `active` until `states` says something else."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.states: dict[str, AttentionState] = {}
        self.default = AttentionState.ACTIVE
        self.asked: Counter[str] = Counter()
        self.on_observe: Callable[[Reference], None] = lambda _reference: None

    async def identity(self) -> str | None:
        """Return None: it has no store."""
        return None

    async def check(self) -> None:
        """Find nothing wrong."""

    async def close(self) -> None:
        """Do nothing."""

    async def observe(self, reference: Reference) -> Observation:
        """Return what the script says."""
        self.asked[reference.attention_id] += 1
        self.on_observe(reference)
        state = self.states.get(reference.attention_id, self.default)
        return observed(reference.attention_id, state, self._clock.now())


class PushingSource:
    """A source that can only push."""

    def __init__(self, fresh_for: timedelta) -> None:
        self.fresh_for = fresh_for

    async def identity(self) -> str | None:
        """Return None: it has no store."""
        return None

    async def check(self) -> None:
        """Find nothing wrong."""

    async def close(self) -> None:
        """Do nothing."""
