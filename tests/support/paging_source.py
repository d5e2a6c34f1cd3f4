"""A source whose pending requests are a list that the test edits; it pages, refreshes and observes like a real one."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from reconciler.errors import SourceUnavailable
from reconciler.references import Observation, Reference, Request
from reconciler.sources.protocol import Incomplete, Known, Page, SessionView
from reconciler.states import AttentionState, Evidence, Kind

BEGINNING = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

BILLING = Request(agent_name="billing")

ACTIVE = (AttentionState.ACTIVE, Evidence.CURRENT_ACTION)
RESOLVED = (AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE)
CANCELLED = (AttentionState.CANCELLED, Evidence.DURABLE_CLOSURE)
SUPERSEDED = (AttentionState.SUPERSEDED, Evidence.DURABLE_SUPERSESSION)
EXPIRED = (AttentionState.EXPIRED, Evidence.DURABLE_CLOSURE)
UNAVAILABLE = (AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE)
UNREACHABLE = (AttentionState.UNAVAILABLE, Evidence.STORE_UNAVAILABLE)


def reference(number: int = 1, *, session_id: str | None = None, kind: Kind = Kind.USER_INPUT) -> Reference:
    """Return the reference of request `number`."""
    return Reference(
        f"attention_{number:04d}", session_id or f"session-{number}", "instance-1", kind, f"action-{number}"
    )


def observation(
    number: int = 1,
    what: tuple[AttentionState, Evidence] = ACTIVE,
    *,
    at: datetime = BEGINNING,
    request: Request | None = BILLING,
    **of: str,
) -> Observation:
    """Return what a source says of request `number`."""
    return Observation(reference(number, **of), what[0], what[1], at, request)  # type: ignore[arg-type]


@dataclass
class PagingSource:
    """What is pending (`pending`), what became of the rest (`outcomes`, by attention id), and what goes wrong."""

    pending: list[Observation] = field(default_factory=list)
    outcomes: dict[str, tuple[AttentionState, Evidence]] = field(default_factory=dict)
    store: str | None = "store-1"
    is_down: bool = False
    problems: frozenset[Incomplete] = frozenset()
    fails_at_page: int | None = None
    cursor_of: Callable[[int], str] = str
    pages: list[tuple[str | None, int]] = field(default_factory=list)
    observed: list[str] = field(default_factory=list)
    unknown_sessions: set[str] = field(default_factory=set)
    broken_sessions: set[str] = field(default_factory=set)
    buggy: set[str] = field(default_factory=set)  # sessions over which the source itself fails
    asked_sessions: list[str] = field(default_factory=list)
    on_page: Callable[[], Awaitable[None]] | None = None

    async def identity(self) -> str | None:
        self._answer()
        return self.store

    async def check(self) -> None:
        self._answer()

    async def close(self) -> None:
        pass

    async def page(self, cursor: str | None, *, limit: int, known: Known) -> Page:
        self._answer()
        self.pages.append((cursor, limit))
        if self.on_page is not None:
            await self.on_page()
        begin = int(cursor.split("-")[0]) if cursor else 0
        if self.fails_at_page is not None and begin // limit >= self.fails_at_page:
            raise SourceUnavailable(Incomplete.STORE_ERROR, "the store failed")
        rows = self.pending[begin : begin + limit]
        if any(row.reference.session_id in self.buggy for row in rows):
            raise TypeError("a row of the page")
        end = begin + limit
        return Page(
            active=rows,
            next_cursor=self.cursor_of(end) if end < len(self.pending) else None,
            problems=self.problems,
            oldest_updated_at=min((row.observed_at for row in rows), default=None),
        )

    async def session(self, session_id: str, *, known: Known) -> SessionView:
        self.asked_sessions.append(session_id)
        self._answer()
        if session_id in self.buggy:
            raise TypeError(session_id)
        if session_id in self.broken_sessions:
            raise SourceUnavailable(Incomplete.STORE_ERROR, "the store failed")
        if session_id in self.unknown_sessions:
            return SessionView((), frozenset({Incomplete.SESSION_NOT_FOUND}))
        return SessionView([row for row in self.pending if row.reference.session_id == session_id], self.problems)

    async def observe(self, reference: Reference) -> Observation:
        self.observed.append(reference.attention_id)
        if reference.session_id in self.buggy:
            raise TypeError(reference.session_id)
        state, reason = self._state_of(reference)
        return Observation(reference, state, reason, BEGINNING)

    def settle(self, number: int, what: tuple[AttentionState, Evidence]) -> None:
        """Take request `number` off what is pending; from now on its observation is `what`."""
        self.outcomes[reference(number).attention_id] = what
        self.pending = [row for row in self.pending if row.reference.attention_id != reference(number).attention_id]

    def _state_of(self, reference: Reference) -> tuple[AttentionState, Evidence]:
        if self.is_down:
            return UNREACHABLE
        if any(row.reference.attention_id == reference.attention_id for row in self.pending):
            return ACTIVE
        return self.outcomes.get(reference.attention_id, UNAVAILABLE)

    def _answer(self) -> None:
        if self.is_down:
            raise SourceUnavailable(Incomplete.STORE_ERROR, "the store does not answer")


def requests(numbers: Sequence[int]) -> list[Observation]:
    """Return active observations, the newest change first as a source orders them."""
    return [observation(number) for number in numbers]
