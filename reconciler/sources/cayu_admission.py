"""Decides which requests that were never seen before are enrolled, and for whom each is.

A row that is enrolled already needs none of this: its page proves it active. An unknown one is looked up once:
whether its session opted out or is an eval trial, whether the boundary and the scope admit it, and which
ancestor names the requester. Cayu copies the two marks onto every child and fork as it creates them, so the
session's own metadata is enough.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from reconciler.references import Observation, Reference
from reconciler.sources.cayu_options import Options, Scope
from reconciler.sources.cayu_projection import DelegationRow, Row, requester_of
from reconciler.sources.protocol import Delegation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cayu.sessions import Session, SessionStore

# How far Cayu's own handoff follows parents (cayu.human_attention_handoff, 0.15.0).
MAX_PARENTS = 8

HANDOFF_MARK = "cayu:attention_handoff"
EVAL_TRIAL_MARK = "cayu:eval_trial"


def is_withheld(metadata: "Mapping[str, Any]") -> bool:
    """Answer whether nobody may be told about the session: it opted out, is an eval trial, or is under one."""
    return metadata.get(HANDOFF_MARK) is False or metadata.get(EVAL_TRIAL_MARK) is True


@dataclass(frozen=True, slots=True)
class Admitted:
    """Which rows are to be enrolled or kept, and which are withheld; the others are left out."""

    active: tuple[Observation, ...]
    withheld: tuple[Reference, ...]


@dataclass(slots=True)
class Admission:
    """The decisions about one page; keeps what it loads, so that siblings share their parents' look-up."""

    store: "SessionStore"
    options: Options
    _loaded: "dict[str, Session | None]" = field(default_factory=dict)

    async def admit(self, rows: Iterable[Row], enrolled: frozenset[str]) -> Admitted:
        """Decide about `rows`, of which the ids in `enrolled` have a notification already."""
        active: list[Observation] = []
        withheld: list[Reference] = []
        for row in rows:
            if row.attention_id in enrolled:
                active.append(row.observation)
            elif await self._may_enroll(row):
                session = await self._load(row.observation.reference.session_id)
                # Deleted or created anew since the page was read: this incarnation waits for nobody any more.
                if session is None or session.instance_id != row.observation.reference.session_instance_id:
                    continue
                if is_withheld(session.metadata):
                    withheld.append(row.observation.reference)
                else:
                    active.append(await self._with_requester(row))
        return Admitted(tuple(active), tuple(withheld))

    async def delegations(self, rows: Sequence[DelegationRow]) -> tuple[Delegation, ...]:
        """Return the navigation requests of sessions that are not withheld and (with a scope) are in it."""
        found = []
        for row in rows:
            parent = await self._load(row.delegation.session_id)
            if parent is None or is_withheld(parent.metadata):
                continue
            scope = self.options.scope
            if scope is None:
                found.append(row.delegation)
            elif await self._in_scope(scope, parent.id, row.agent_name, row.parent_session_id):
                child = await self._load(row.delegation.child_session_id)
                is_authorized = child is not None and child.agent_name in scope.child_agents
                found.append(replace(row.delegation, is_child_enrolled=is_authorized))
        return tuple(found)

    async def _may_enroll(self, row: Row) -> bool:
        boundary = self.options.enroll_after
        request = row.observation.request
        paused_at = request.paused_at if request is not None else None
        if boundary is not None and paused_at is not None and paused_at < boundary:
            return False
        scope = self.options.scope
        if scope is None:
            return True
        session_id = row.observation.reference.session_id
        return await self._in_scope(scope, session_id, row.agent_name, row.parent_session_id)

    async def _in_scope(self, scope: Scope, session_id: str, agent_name: str, parent_id: str | None) -> bool:
        if session_id in scope.parents:
            return True
        if agent_name not in scope.child_agents:
            return False
        async for ancestor in self._ancestors(parent_id):
            if ancestor.id in scope.parents:
                return True
            if ancestor.agent_name not in scope.child_agents:
                return False
        return False

    async def _with_requester(self, row: Row) -> Observation:
        """Give a child the requester of its nearest ancestor that names one."""
        label = self.options.requester_label
        request = row.observation.request
        if label is None or request is None or label in request.labels:
            return row.observation
        async for ancestor in self._ancestors(row.parent_session_id):
            if label in ancestor.labels:
                requester = requester_of(ancestor.labels, label)
                return replace(row.observation, request=replace(request, requester=requester))
        return row.observation

    async def _ancestors(self, parent_id: str | None) -> "AsyncIterator[Session]":
        for _ in range(MAX_PARENTS):
            parent = await self._load(parent_id) if parent_id is not None else None
            if parent is None:
                return
            yield parent
            parent_id = parent.parent_session_id

    async def _load(self, session_id: str) -> "Session | None":
        if session_id not in self._loaded:
            self._loaded[session_id] = await self.store.load(session_id)
        return self._loaded[session_id]
