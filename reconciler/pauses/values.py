"""What is handed from one step of a pause to the next. Tokens, questions and answers are left out of every repr."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from .claims import PauseClaims


@dataclass(frozen=True, slots=True)
class MintedPause:
    """A token fresh from the signer. It exists outside only once its issuance is recorded."""

    envelope: Any = field(repr=False)
    claims: PauseClaims


@dataclass(frozen=True, slots=True)
class ValidatedPause:
    """A token that was verified, in its window, and (after binding) presented where it belongs.

    `pin` is what the signer returned for this verification; `cross_scope` says that another scope than the
    minting one presented it and that its registration allows that.
    """

    claims: PauseClaims
    pin: Any
    cross_scope: bool = False


@dataclass(frozen=True, slots=True)
class PauseBinding:
    """Where a run stands when it pauses: resolved afresh for each run, by a callable."""

    pin: Any = None
    scope: Any = None
    run_id: str = ""
    root_run_id: str = ""
    session_id: str = ""
    thread_id: str = ""
    checkpoint_id: str | None = None


@dataclass(frozen=True, slots=True)
class InteractionEvent:
    """What the run shows when it has paused.

    `resumable` is true only where the request and the turn were both recorded; it is never upgraded later.
    """

    name: str
    payload: Any = field(repr=False)
    pause: MintedPause
    run_id: str
    session_id: str
    interrupt_id: str = ""
    tool_call_id: str = ""
    resumable: bool = False


@dataclass(frozen=True, slots=True)
class InteractionToolSpec:
    """A tool that the model may call: `parameters` are the names of its arguments."""

    name: str
    description: str
    coroutine: Callable[..., Awaitable[Any]]
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CrossScopeRedemption:
    """An attempt to redeem a token from another scope than its own, allowed by its registration.

    It is an attempt: the answer may still be refused and the claim lost. `at` is epoch seconds.
    """

    name: str
    interrupt_id: str
    jti: str
    expected_scope_hash: str
    presented_scope_hash: str
    at: float
