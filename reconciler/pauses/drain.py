"""When tokens of the retired format are over: the horizon, and what can be proven about it."""

import math
from dataclasses import dataclass
from enum import StrEnum

from .errors import RetirementHorizonError


class DrainScope(StrEnum):
    """How far a proof reaches (the documentation leaves the spelling open)."""

    PROCESS = "process"  # what this process issued and redeemed
    DEPLOYMENT = "deployment"  # both records are shared by every process of the deployment


PROCESS = DrainScope.PROCESS
DEPLOYMENT = DrainScope.DEPLOYMENT


@dataclass(frozen=True, slots=True)
class RetirementHorizon:
    """From `at` (epoch seconds) on no token of the retired format is issued; `reason` is the operator's."""

    at: float
    reason: str


@dataclass(frozen=True, slots=True)
class DrainProof:
    """Whether tokens of the retired format can still be redeemed.

    `outstanding` holds the ids of those that are still live, sorted. `deadline` is the last instant at which
    one could be. `reason` says in words what `drained` rests on.
    """

    drained: bool
    outstanding: tuple[str, ...]
    reason: str
    horizon: RetirementHorizon | None = None
    deadline: float | None = None
    scope: DrainScope = PROCESS


def require_future_horizon(at: float, now: float) -> None:
    """Raise RetirementHorizonError unless `at` is a real instant after `now`.

    A horizon in the past would declare tokens impossible that were issued after it.
    """
    if not (math.isfinite(at) and at > now):
        raise RetirementHorizonError("a retirement horizon lies in the future")


def drain_deadline(horizon: RetirementHorizon | None, maximum_ttl_seconds: float) -> float | None:
    """Return the last instant at which a token issued before the horizon can be live; None without a horizon."""
    return None if horizon is None else horizon.at + maximum_ttl_seconds


def prove_drained(
    *,
    now: float,
    horizon: RetirementHorizon | None,
    maximum_ttl_seconds: float,
    live_legacy: tuple[str, ...],
    scope: DrainScope,
) -> DrainProof:
    """Decide whether the retired format is over.

    The documentation leaves the rule open. Ours: never without a horizon, since more may be issued; from the
    horizon to the deadline where no row is live; after the deadline by time alone, because nothing issued
    before the horizon can be live any more. A row that is live beyond the deadline contradicts that and is
    never drained away.
    """
    deadline = drain_deadline(horizon, maximum_ttl_seconds)
    if horizon is None or deadline is None:
        drained, reason = False, "no retirement horizon is recorded"
    elif now < horizon.at:
        drained, reason = False, "the retirement horizon is not reached"
    elif live_legacy:
        drained, reason = False, "tokens of the retired format are live"
    elif now > deadline:
        drained, reason = True, "the longest lifetime has passed since the retirement horizon"
    else:
        drained, reason = True, "no token of the retired format is live"
    return DrainProof(drained, live_legacy, reason, horizon, deadline, scope)
