"""The runtime's own delivery of events to its sinks, as evidence: what is outstanding, what it gave up on, what to do.

Read-only, and by the calls that carry no exception text: a sink's error may hold a secret. A dead letter loses no
request, for the sweep reads the pending actions themselves; it costs the time until the next pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from reconciler.errors import SourceUnavailable

# Cayu's server lists at most this many at once (GET /api/event-side-effects/deliveries, 0.15.0).
PAGE_LIMIT = 200

_M = TypeVar("_M", bound=BaseModel)


class FanoutRow(BaseModel):
    """One event on its way to the sinks. `last_error` is a fixed text: that there was an error, not which."""

    model_config = ConfigDict(frozen=True)

    session_id: str
    event_sequence: int
    status: str
    claimable: bool
    attempts: int
    lease_expires_at: AwareDatetime | None
    next_attempt_at: AwareDatetime | None
    updated_at: AwareDatetime
    last_error: str | None


class FanoutHealth(BaseModel):
    """The runtime's own summary; counts of events, `outstanding_total` with dead letters, instants by its clock."""

    model_config = ConfigDict(frozen=True)

    observed_at: AwareDatetime
    pending: int
    leased_live: int
    leased_expired: int
    failed_retryable: int
    failed_deferred: int
    dead_lettered: int
    delivered: int
    claimable_total: int
    outstanding_total: int
    repeatedly_failing: int
    final_attempt_boundary: int
    max_automatic_attempts: int
    oldest_pending_at: AwareDatetime | None = None
    oldest_failed_at: AwareDatetime | None = None
    oldest_dead_letter_at: AwareDatetime | None = None


class _FanoutPage(BaseModel):
    deliveries: list[FanoutRow]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Fanout:
    """The summary, and the outstanding events up to the asked number."""

    health: FanoutHealth
    rows: Sequence[FanoutRow]
    has_more: bool

    @property
    def what_to_fix(self) -> tuple[str, ...]:
        """Return one line for each thing that a person should do; none where all is well."""
        return tuple(_advice(self.health))


@runtime_checkable
class ShowsFanout(Protocol):
    """A source whose runtime tells how its own event delivery stands."""

    async def fanout(self, *, limit: int) -> Fanout:
        """Return the outstanding events, at most `limit` of 1 to 200; raises SourceError."""
        ...


def fanout_of(health: Mapping[str, Any], page: Mapping[str, Any]) -> Fanout:
    """Read both answers of a runtime; raises SourceUnavailable (`bad_answer`) where they are something else."""
    found = _read(_FanoutPage, page)
    return Fanout(_read(FanoutHealth, health), found.deliveries, found.next_cursor is not None)


def _read(model: type[_M], value: Mapping[str, Any]) -> _M:
    try:
        return model.model_validate(value)
    except ValidationError:
        raise SourceUnavailable(
            "bad_answer", "the runtime's account of its event delivery is not Cayu 0.15's"
        ) from None


def _advice(health: FanoutHealth) -> list[str]:
    lines = []
    if health.dead_lettered:
        lines.append(
            f"{health.dead_lettered} events were given up after {health.max_automatic_attempts} attempts: look at the"
            " agent's own log for the sink's error and correct it; their requests come by the sweep"
        )
    if health.repeatedly_failing or health.final_attempt_boundary:
        lines.append("events fail again and again: see that the agent's sink reaches its Redis or receiver now")
    if health.claimable_total:
        lines.append(
            f"{health.claimable_total} events wait for a recovery sweep: run one where the agent has its sinks"
            " (a Cayu server does it by itself)"
        )
    return lines
