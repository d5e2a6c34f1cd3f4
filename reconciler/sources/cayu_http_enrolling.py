"""Turns the actions of one answer of a Cayu server into what the reconciler takes, asking more for unknown ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

from reconciler.references import Observation, Reference, Request, is_storable
from reconciler.sources.cayu_admission import MAX_PARENTS, is_withheld
from reconciler.sources.cayu_http_answers import KINDS, Action, Inbox, Session, parsed
from reconciler.sources.cayu_http_options import Options
from reconciler.sources.cayu_projection import requester_of
from reconciler.sources.http_client import HttpClient
from reconciler.sources.protocol import Delegation, Known
from reconciler.states import AttentionState, Evidence, Kind
from reconciler.tables import ID_CHARS, SESSION_ID_CHARS

_NOT_FOUND, _BAD_REQUEST, _UNPROCESSABLE = 404, 400, 422


@dataclass(slots=True)
class Shown:
    """What the actions of one answer come to."""

    active: list[Observation] = field(default_factory=list)
    withheld: list[Reference] = field(default_factory=list)
    delegations: list[Delegation] = field(default_factory=list)
    unprojectable_count: int = 0


class Enrolling:
    """The questions about one answer; keeps the sessions it asked for, so that siblings share their parents'."""

    def __init__(self, client: HttpClient, options: Options, *, seen_at: datetime) -> None:
        self._client = client
        self._options = options
        self._seen_at = seen_at
        self._sessions: dict[str, Session | None] = {}

    async def show(self, actions: Sequence[Action], known: Known) -> Shown:
        """Return what `actions` show; those that `known` has are taken as they are."""
        shown = Shown()
        ids = [action.attention_id for action in actions if action.attention_id is not None]
        enrolled = await known.enrolled(ids) if ids else frozenset[str]()
        for action in actions:
            kind = KINDS.get(action.kind)
            if action.delegated_action is not None:
                await self._delegate(action, action.delegated_action.child_session_id, shown)
            elif action.attention_id is None or kind is None or len(action.session.id) > SESSION_ID_CHARS:
                shown.unprojectable_count += 1
            elif action.attention_id in enrolled:
                reference = _reference(action, action.attention_id, kind, "")
                shown.active.append(self._observation(reference, action, _requester(action, self._options)))
            elif not self._is_before_boundary(action):
                await self._enroll(action, action.attention_id, kind, shown)
        return shown

    async def session(self, session_id: str) -> Session | None:
        """Return the session by its public alias; None where the server does not have it or hides it from us."""
        if session_id not in self._sessions:
            self._sessions[session_id] = await self._ask_session(session_id)
        return self._sessions[session_id]

    async def _ask_session(self, session_id: str) -> Session | None:
        also = frozenset({_BAD_REQUEST, _NOT_FOUND, _UNPROCESSABLE})
        answer = await self._client.get(f"/api/sessions/{quote(session_id, safe='')}", also=also)
        return parsed(Session, answer.body) if answer.status == 200 else None

    async def _delegate(self, action: Action, child_session_id: str, shown: Shown) -> None:
        session = await self.session(action.session.id)
        if session is None or not is_withheld(session.metadata):
            shown.delegations.append(Delegation(action.session.id, child_session_id))

    async def _enroll(self, action: Action, attention_id: str, kind: Kind, shown: Shown) -> None:
        session = await self.session(action.session.id)
        if session is not None and is_withheld(session.metadata):
            shown.withheld.append(_reference(action, attention_id, kind, ""))
            return
        item_id = await self._item_id(action.session.id, attention_id)
        if item_id is None or not is_storable(_reference(action, attention_id, kind, item_id)):
            # Settled since, hidden from us, or nothing that can be stored: it could never be asked about.
            shown.unprojectable_count += 1
            return
        requester = await self._inherited_requester(action)
        shown.active.append(self._observation(_reference(action, attention_id, kind, item_id), action, requester))

    async def _item_id(self, session_id: str, attention_id: str) -> str | None:
        answer = await self._client.get("/api/inbox", {"session_id": session_id, "limit": "200"})
        for item in parsed(Inbox, answer.body).items:
            if item.attention_id == attention_id:
                return item.id
        return None

    async def _inherited_requester(self, action: Action) -> str | None:
        label, labels, parent_id = (
            self._options.requester_label,
            action.session.labels,
            action.session.parent_session_id,
        )
        for _ in range(MAX_PARENTS):
            if label is None or label in labels or parent_id is None:
                break
            parent = await self.session(parent_id)
            if parent is None:
                break
            labels, parent_id = parent.labels, parent.parent_session_id
        return requester_of(labels, label)

    def _is_before_boundary(self, action: Action) -> bool:
        boundary = self._options.enroll_after
        return boundary is not None and action.event.timestamp < boundary

    def _observation(self, reference: Reference, action: Action, requester: str | None) -> Observation:
        session = action.session
        request = Request(
            agent_name=session.agent_name[:ID_CHARS],
            requester=requester,
            environment_name=session.environment_name[:ID_CHARS] if session.environment_name else None,
            labels=session.labels,
            paused_at=action.event.timestamp,
            public_session_id=session.id if len(session.id) <= ID_CHARS else None,
        )
        return Observation(reference, AttentionState.ACTIVE, Evidence.CURRENT_ACTION, self._seen_at, request)


def _requester(action: Action, options: Options) -> str | None:
    return requester_of(action.session.labels, options.requester_label)


def _reference(action: Action, attention_id: str, kind: Kind, item_id: str) -> Reference:
    return Reference(
        attention_id=attention_id,
        session_id=action.session.id,
        session_instance_id="",
        kind=kind,
        action_id=item_id,
        source_sequence=action.event.sequence,
    )
