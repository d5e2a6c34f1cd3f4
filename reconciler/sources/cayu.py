"""The source that asks a Cayu store directly: scans it, refreshes a session, observes one reference.

It reads the authority, never an event: what `query_pending_actions` shows is active, what
`get_human_attention_state` says of one exact reference is its state, and absence says nothing. All of Cayu's
pending kinds are read; a delegated action is only passed on as navigation, its child has a row of its own.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from config.clock import Clock
from reconciler.errors import SourceError, SourceUnavailable, WrongStore
from reconciler.references import Observation, Reference
from reconciler.sources.cayu_admission import Admission, Admitted
from reconciler.sources.cayu_options import Options, Scope
from reconciler.sources.cayu_postgres import check_privileges
from reconciler.sources.cayu_projection import Projection, cayu_reference, observed, project
from reconciler.sources.cayu_queries import PAGE_LIMIT, has_session, page_problems, problems_of, query_actions
from reconciler.sources.cayu_store import OpenStore, file_mark, open_store, store_errors
from reconciler.sources.cayu_target import StoreFault, Target, locate
from reconciler.sources.fanout import PAGE_LIMIT as FANOUT_LIMIT
from reconciler.sources.fanout import Fanout, fanout_of
from reconciler.sources.protocol import Delegation, Incomplete, Known, Page, SessionView
from reconciler.sources.services import SourceServices
from reconciler.states import AttentionState, Evidence

if TYPE_CHECKING:
    from cayu.sessions import PendingActionListResult

__all__ = ["TYPE", "CayuSource", "Options", "Scope", "build"]

TYPE = "cayu"

# About nine milliseconds of computation for each row; see reconciler/sources/apart.py.
PAGES_APART = True

# Beyond these a store counts as not answering. A page is about two seconds of computation on an idle core.
_PAGE_TIMEOUT = timedelta(seconds=120)
_OBSERVE_TIMEOUT = timedelta(seconds=10)


def build(namespace: str, options: Options, services: SourceServices) -> "CayuSource":
    """Make the source of `namespace`; opens nothing yet. Raises SourceRefused where the options name no store."""
    return CayuSource(namespace, options, locate(options, services.folder), services.clock)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a result shows to those who enroll."""

    projection: Projection
    admitted: Admitted
    delegations: tuple[Delegation, ...]


class CayuSource:
    """One Cayu store under one namespace; opens it on first use, and anew where the file was replaced."""

    def __init__(self, namespace: str, options: Options, target: Target, clock: Clock) -> None:
        self._namespace = namespace
        self._options = options
        self._target = target
        self._clock = clock
        self._opening = asyncio.Lock()
        self._open: OpenStore | None = None
        self._expected_identity: str | None = None

    async def identity(self) -> str | None:
        """Return the store's identity (32 hex digits); from now on only that store is read.

        Raises SourceUnavailable or SourceRefused, one line each.
        """
        opened = await self._opened()
        self._expected_identity = opened.identity
        return opened.identity

    async def check(self) -> None:
        """Open the store and read one pending action; raises SourceError (one line) where that fails."""
        async with self._reading(_PAGE_TIMEOUT) as opened:
            await query_actions(opened, None, 1, session_id=None)
            await check_privileges(self._target)

    async def close(self) -> None:
        """Close the store; safe to call twice, and a later call opens it again."""
        async with self._opening:
            opened, self._open = self._open, None
        if opened is not None:
            await opened.close()

    async def page(self, cursor: str | None, *, limit: int, known: Known) -> Page:
        """Return one page, newest change first; at most 200 rows, fewer where they would be too large.

        Raises SourceError, nothing was read then: `cursor_refused` asks for a new scan from the start, after
        `store_error`, `page_too_large` and the rest the cursor stays good.
        """
        async with self._reading(_PAGE_TIMEOUT) as opened:
            seen_at = self._clock.now()
            result = await query_actions(opened, cursor, min(limit, PAGE_LIMIT), session_id=None)
            shown = await self._show(opened, result, seen_at, known)
            return Page(
                active=shown.admitted.active,
                next_cursor=result.next_cursor,
                problems=page_problems(result, cursor, shown.projection.unprojectable_count),
                delegations=shown.delegations,
                withheld=shown.admitted.withheld,
                unprojectable_count=shown.projection.unprojectable_count,
                oldest_updated_at=shown.projection.oldest_updated_at,
            )

    async def session(self, session_id: str, *, known: Known) -> SessionView:
        """Return what is pending in the session now; an id the store does not know is SESSION_NOT_FOUND."""
        async with self._reading(_PAGE_TIMEOUT) as opened:
            seen_at = self._clock.now()
            if not await has_session(opened, session_id):
                return SessionView((), frozenset({Incomplete.SESSION_NOT_FOUND}))
            result = await query_actions(opened, None, PAGE_LIMIT, session_id=session_id)
            shown = await self._show(opened, result, seen_at, known)
            problems = problems_of(result, shown.projection.unprojectable_count)
            if result.has_more:
                problems |= {Incomplete.HAS_MORE}
            return SessionView(shown.admitted.active, problems, shown.delegations, shown.admitted.withheld)

    async def observe(self, reference: Reference) -> Observation:
        """Return what Cayu says of the reference now; whatever keeps it from saying is `unavailable`."""
        asked_at = self._clock.now()
        state, reason = AttentionState.UNAVAILABLE, Evidence.STORE_UNAVAILABLE
        try:
            exact = cayu_reference(reference)
        except ValueError:  # no session can have it; Cayu's server gives the same answer
            return Observation(reference, state, Evidence.SESSION_UNAVAILABLE, asked_at)
        except ImportError:
            return Observation(reference, state, reason, asked_at)
        try:
            async with self._reading(_OBSERVE_TIMEOUT) as opened:
                answer = await opened.app.get_human_attention_state(exact)
                state, reason = observed(answer.state, answer.reason)
                if reason is Evidence.STORE_UNAVAILABLE:  # how Cayu tells that the read failed
                    raise RuntimeError("the runtime could not read its store")
        except SourceError:
            return Observation(reference, AttentionState.UNAVAILABLE, Evidence.STORE_UNAVAILABLE, asked_at)
        return Observation(reference, state, reason, asked_at)

    async def fanout(self, *, limit: int) -> Fanout:
        """Return how the runtime's own event delivery stands; reads only, and claims nothing. Raises SourceError."""
        from cayu.sessions.event_delivery import PersistedEventSideEffectQuery

        async with self._reading(_PAGE_TIMEOUT) as opened:
            health = await opened.store.get_persisted_event_side_effect_health()
            query = PersistedEventSideEffectQuery(limit=min(limit, FANOUT_LIMIT))
            page = await opened.store.query_persisted_event_side_effect_deliveries(query)
            return fanout_of(health.model_dump(), page.model_dump())

    async def _show(
        self, opened: OpenStore, result: "PendingActionListResult", seen_at: datetime, known: Known
    ) -> _Shown:
        """Project a result and decide about the rows that have no notification yet."""
        projection = project(result.actions, seen_at=seen_at, requester_label=self._options.requester_label)
        rows = projection.rows
        enrolled = await known.enrolled([row.attention_id for row in rows]) if rows else frozenset()
        admission = Admission(opened.store, self._options)
        admitted = await admission.admit(rows, enrolled)
        return _Shown(projection, admitted, await admission.delegations(projection.delegations))

    @asynccontextmanager
    async def _reading(self, timeout: timedelta) -> AsyncIterator[OpenStore]:
        """Give the open store, of the expected identity; what fails inside is SourceUnavailable."""
        opened = await self._opened()
        if self._expected_identity not in (None, opened.identity):
            raise WrongStore(
                "wrong_store", f"another store stands at {self._target.name} now: namespace {self._namespace}"
            )
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                yield opened
        except store_errors():
            # Opened anew, a store that is gone fails within moments; a pool would wait for it again and again.
            await self._discard(opened)
            # The store's own text may hold addresses or content: a fixed line instead.
            raise SourceUnavailable(
                StoreFault.STORE_ERROR, f"{self._target.name} could not be read: namespace {self._namespace}"
            ) from None

    async def _discard(self, opened: OpenStore) -> None:
        async with self._opening:
            if self._open is opened:
                self._open = None
        await opened.close()

    async def _opened(self) -> OpenStore:
        async with self._opening:
            opened, mark = self._open, file_mark(self._target)
            if opened is not None and opened.mark != mark:
                # The file was replaced: our connections would go on reading the deleted one.
                self._open = None
                await opened.close()
            if self._open is None:
                self._open = await open_store(self._target)
            return self._open
