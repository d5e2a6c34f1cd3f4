"""What a source can do, as explicit types: scan, refresh a session, observe a reference, or none of them.

The reconciler asks `isinstance(source, Scans)` and the like; a push-only source has none of the three.
`reconciler.sources.testing.conformance` holds what is asked of every implementation; docs/plug-ins.md shows one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, runtime_checkable

from reconciler.errors import SourceError
from reconciler.references import Observation, Reference


class Incomplete(StrEnum):
    """Why a pass of a source cannot count as complete (closed; stored and shown)."""

    PENDING_ACTION_ISSUES = "pending_action_issues"  # the runtime could not read some of its own pending actions
    PAGE_TOO_LARGE = "page_too_large"  # one pending action is too large to be read
    REPEATED_CURSOR = "repeated_cursor"  # the source's cursor led back to a page that was read
    CURSOR_REFUSED = "cursor_refused"  # the source no longer takes the cursor; the next pass begins anew
    STORE_ERROR = "store_error"  # the source did not answer, or not as it should
    PAGE_BUDGET = "page_budget"  # more pages than one pass reads; the next one goes on there
    UNPROJECTABLE_ACTION = "unprojectable_action"  # a pending action of a shape that cannot be shown as a request
    SESSION_NOT_FOUND = "session_not_found"  # a hint named a session that the source does not know
    WRONG_STORE = "wrong_store"  # another store stands under the namespace (`handbell sources accept`)
    HAS_MORE = "has_more"  # one session has more pending actions than one answer holds


def problem_of(error: SourceError) -> Incomplete:
    """Return the word that is stored for a source's error; any that is not of the closed set is `store_error`."""
    return Incomplete(error.reason) if error.reason in set(Incomplete) else Incomplete.STORE_ERROR


@dataclass(frozen=True, slots=True)
class Delegation:
    """A parent that waits on a child: navigation only, never a notification of its own.

    `is_child_enrolled` is False where a scope leaves the child out: then only an operator can be shown the way.
    """

    session_id: str
    child_session_id: str
    is_child_enrolled: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """One page of what is pending now at the source.

    `active` holds an observation (state active, with its request) for each projectable action that was not
    withheld. `oldest_updated_at` lets a head pass stop; None where the page was empty or the source cannot say.
    `next_cursor` is opaque and None at the end. `problems` makes the pass incomplete; nothing is settled by it.
    """

    active: Sequence[Observation]
    next_cursor: str | None
    problems: frozenset[Incomplete] = frozenset()
    delegations: Sequence[Delegation] = ()
    withheld: Sequence[Reference] = ()
    unprojectable_count: int = 0
    oldest_updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SessionView:
    """Everything that is pending in one session now; `problems` empty means the view is complete."""

    active: Sequence[Observation]
    problems: frozenset[Incomplete] = frozenset()
    delegations: Sequence[Delegation] = ()
    withheld: Sequence[Reference] = ()


class Source(Protocol):
    """What every source has."""

    async def identity(self) -> str | None:
        """Return the store's own identity, None where the source has none; raises SourceError."""
        ...

    async def check(self) -> None:
        """Raise SourceError (one line) unless the source can be used as configured."""
        ...

    async def close(self) -> None:
        """Let go of everything; safe to call twice."""
        ...


@runtime_checkable
class Scans(Protocol):
    """A source whose pending actions can be paged through, newest change first."""

    async def page(self, cursor: str | None, *, limit: int, known: "Known") -> Page:
        """Return one page with unchanged filters; raises SourceUnavailable or SourceRefused."""
        ...


@runtime_checkable
class RefreshesSessions(Protocol):
    """A source that can show what is pending in one session."""

    async def session(self, session_id: str, *, known: "Known") -> SessionView:
        """Return what is pending in the session now; raises SourceUnavailable or SourceRefused."""
        ...


@runtime_checkable
class Observes(Protocol):
    """A source that can be asked about one exact reference."""

    async def observe(self, reference: Reference) -> Observation:
        """Return what is true of the reference now; an outage is `unavailable`, never an exception."""
        ...


@runtime_checkable
class PushOnly(Protocol):
    """A source that cannot be asked: its last word counts as true for `fresh_for` and proves nothing after that."""

    fresh_for: timedelta


class Known(Protocol):
    """Which attention ids are already enrolled: the withheld check is made only for rows not seen before."""

    async def enrolled(self, attention_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `attention_ids` that have a notification in the source's namespace."""
        ...
