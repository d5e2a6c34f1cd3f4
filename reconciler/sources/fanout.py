"""What a runtime's own fan-out of events has left undone: its rows, its health, and what an operator should mend.

A runtime delivers each committed event to its sinks and gives up after three attempts; nothing brings such a dead
letter back. This only reads, by the calls that carry no exception text; it claims, retries and deletes nothing.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

# Rows that one answer lists at most; the health counts all of them.
ROW_LIMIT = 1000
PAGE_LIMIT = 200  # the server's own bound (GET /api/event-side-effects/deliveries, Cayu 0.15.0)

Ask = Callable[[str | None], Awaitable[Mapping[str, Any]]]


class Health(BaseModel):
    """The runtime's own summary: `claimable_total` may be sent again at once, dead ones are outstanding too."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    observed_at: datetime
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
    oldest_claimable_at: datetime | None = None
    oldest_dead_letter_at: datetime | None = None


class Delivery(BaseModel):
    """One event that is not delivered to every sink. `last_error` is the runtime's fixed sentence, or None."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    session_id: str
    event_id: str
    event_sequence: int
    status: Literal["pending", "leased", "failed", "delivered", "dead_lettered"]
    claimable: bool
    attempts: int
    lease_expires_at: datetime | None
    next_attempt_at: datetime | None
    updated_at: datetime
    last_error: str | None


class _Page(BaseModel):
    model_config = ConfigDict(extra="ignore")

    deliveries: list[Delivery]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class FanOut:
    """What one look showed; `is_cut` says that there are more rows than `ROW_LIMIT`."""

    health: Health
    deliveries: Sequence[Delivery]
    is_cut: bool


@runtime_checkable
class ShowsFanOut(Protocol):
    """A source whose runtime can be asked about its fan-out."""

    async def fan_out(self) -> FanOut:
        """Return what is outstanding now; raises SourceUnavailable or SourceRefused."""
        ...


async def read_fan_out(health: Mapping[str, Any], page: Ask) -> FanOut:
    """Put together the answers of the runtime: its health, and outstanding rows by `page(cursor)`, followed to the end.

    Raises ValueError where an answer is not what the runtime documents.
    """
    rows: list[Delivery] = []
    cursor: str | None = None
    while True:
        answer = _Page.model_validate(await page(cursor))
        rows += answer.deliveries
        cursor = answer.next_cursor
        if cursor is None or len(rows) >= ROW_LIMIT:
            break
    return FanOut(Health.model_validate(health), tuple(rows[:ROW_LIMIT]), cursor is not None or len(rows) > ROW_LIMIT)


def advice(health: Health) -> tuple[str, ...]:
    """Return what an operator should mend, one sentence each; empty where nothing needs a person."""
    found = (
        (
            health.dead_lettered,
            f"{health.dead_lettered} dead letters: the runtime gave up after {health.max_automatic_attempts} attempts,"
            " nothing brings them back. Mend the sink's destination (`handbell check`), let `handbell sweep` find what"
            " they were about, keep the rows as evidence; do not delete or rerun the sessions.",
        ),
        (
            health.final_attempt_boundary,
            f"{health.final_attempt_boundary} have one attempt left: mend the sink's destination before the next"
            " recovery sweep.",
        ),
        (
            health.failed_deferred,
            f"{health.failed_deferred} failed and wait for their retry: a sink does not accept. Is Handbell running,"
            " and does the agent reach its Redis or its web address?",
        ),
        (
            health.claimable_total,
            f"{health.claimable_total} may be sent again now: if they stay, nobody runs the runtime's recovery. Run"
            " `python -m handbell_emit.recovery` in the agent's environment, or serve the agent by `cayu serve`.",
        ),
    )
    return tuple(sentence for count, sentence in found if count)
