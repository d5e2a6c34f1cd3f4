"""Makes a message from a delivery's row: content-free, from the runtime's fixed summaries and its public ids."""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from reconciler.explaining import explanation
from reconciler.plan.rows import digest_of
from reconciler.references import Observation
from reconciler.routes import Routing
from reconciler.states import SUMMARIES, AttentionState, Kind
from worker.channels.protocol import Item, Message, SendContext
from worker.delivery.groups import Unit
from worker.delivery.requests import Request
from worker.delivery.rows import Claimed, Notice

# A notice is about Handbell itself; its item only carries the text.
_OURSELVES = "handbell"


@dataclass(frozen=True, slots=True)
class Links:
    """How a link to a request is made.

    `pattern` is a URL with {session}, {attention_id} and {namespace} to be filled in, percent-encoded; None makes no
    links. {session} is the runtime's public id; its raw id is used only where `are_raw_ids_allowed`.
    """

    pattern: str | None = None
    are_raw_ids_allowed: bool = False

    def link(self, request: Request) -> str | None:
        """Return the link to a request, None where its session has no id that may be shown."""
        session = request.public_session_id
        if session is None and self.are_raw_ids_allowed:
            session = request.enrolled.reference.session_id
        if self.pattern is None or not session:  # a pause's ledger may know no session
            return None
        values = {
            "{session}": session,
            "{attention_id}": request.enrolled.reference.attention_id,
            "{namespace}": request.enrolled.namespace,
        }
        link = self.pattern
        for name, value in values.items():
            link = link.replace(name, quote(value, safe=""))
        return link


def message_for(unit: Unit, links: Links, routing: Routing) -> Message:
    """Return what the recipient is told; an opening says what the source said just before.

    Where its route explains, the footer says why the recipient is told.

    The end of a request that was told together with others shows how all of them stand now.
    """
    lead = unit.lead
    if lead.request is None:
        assert lead.notice is not None, "a delivery is about a request or a notice"
        return Message(key=lead.message_key, purpose=lead.purpose, items=(_notice_item(lead.notice),))
    if lead.is_settle:
        told = {request.enrolled.id: request for request in (lead.request, *lead.told_with)}
        items = tuple(_item(request, links, None) for _, request in sorted(told.items()))
        return Message(key=lead.message_key, purpose=lead.purpose, items=items)
    items = tuple(_item(go.row.request, links, go.observation) for go in unit.members if go.row.request is not None)
    purpose = lead.purpose if len(items) == 1 else digest_of(lead.purpose)
    return Message(key=lead.message_key, purpose=purpose, items=items, footer=_footer(lead, lead.request, routing))


def _footer(row: Claimed, request: Request, routing: Routing) -> str | None:
    route = routing.owner(request.case.subject, row.destination)
    return explanation(route, row.destination, row.purpose) if route is not None and route.explains else None


def context_for(row: Claimed, now: datetime) -> SendContext:
    """Return what a try needs besides its message."""
    return SendContext(
        row.recipient, attempt=max(1, row.attempts), now=now, sent_before=row.sent_before, since=row.created_at
    )


def _item(request: Request, links: Links, observation: Observation | None) -> Item:
    known = observation or request.enrolled
    return Item(
        namespace=request.enrolled.namespace,
        attention_id=request.enrolled.reference.attention_id,
        kind=request.enrolled.reference.kind,
        summary=SUMMARIES[request.enrolled.reference.kind],
        state=known.state,
        reason=known.reason.value,
        agent_name=request.agent_name,
        requester=request.requester,
        link=links.link(request),
        first_seen_at=request.first_seen_at,
        state_changed_at=request.state_changed_at,
    )


def _notice_item(notice: Notice) -> Item:
    return Item(
        namespace=_OURSELVES,
        attention_id=f"{notice.kind}:{notice.subject}",
        kind=Kind.MANUAL_RECOVERY,
        summary=notice.detail,
        state=AttentionState.ACTIVE,
        reason=notice.kind,
        agent_name=None,
        requester=None,
        link=None,
        first_seen_at=notice.opened_at,
        state_changed_at=notice.opened_at,
    )
