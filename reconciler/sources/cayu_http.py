"""The source that asks a Cayu server over HTTP, for workers that may not open the store.

It pages `GET /api/pending-actions` and observes `GET /api/inbox/{item_id}`; `/api/health`, which is open, is never
read as truth. All ids are the server's public ones and stay so: of a reference `session_id` is the public alias,
`action_id` the inbox item's id, and there is no session instance. A request that has no notification yet costs two
questions more: its item's id, and its session, whose metadata tells whether it is withheld and whose parents tell
the requester. A session that the server hides from us cannot be known as withheld; its request is enrolled.

A settled item says that the runtime took a decision; the store source waits for the closure that follows it.
"""

from urllib.parse import quote

from config.clock import Clock
from reconciler.errors import SourceError, SourceUnavailable
from reconciler.references import Observation, Reference
from reconciler.sources.cayu_http_answers import ItemState, PendingActions, item_state, parsed
from reconciler.sources.cayu_http_enrolling import Enrolling, Shown
from reconciler.sources.cayu_http_options import Options
from reconciler.sources.fanout import PAGE_LIMIT as FANOUT_LIMIT
from reconciler.sources.fanout import Fanout, fanout_of
from reconciler.sources.http_client import HttpClient
from reconciler.sources.protocol import Incomplete, Known, Page, SessionView
from reconciler.sources.services import SourceServices
from reconciler.states import AttentionState, Evidence
from reconciler.tables import SESSION_ID_CHARS

__all__ = ["TYPE", "CayuHttpSource", "Options", "build"]

TYPE = "cayu-http"

_PAGE_LIMIT = 200
_BAD_REQUEST, _NOT_FOUND, _TOO_LARGE, _UNPROCESSABLE = 400, 404, 413, 422


def build(namespace: str, options: Options, services: SourceServices) -> "CayuHttpSource":
    """Make the source of `namespace`; asks nothing yet."""
    assert services.http is not None, "the wiring opens an HTTP session for sources"
    token = options.token.get_secret_value() if options.token is not None else None
    place = f"namespace {namespace!r}: the server of url"
    client = HttpClient(services.http, services.clock, url=options.url, token=token, place=place)
    return CayuHttpSource(options, client, services.clock)


class CayuHttpSource:
    """One Cayu server under one namespace."""

    def __init__(self, options: Options, client: HttpClient, clock: Clock) -> None:
        self._options = options
        self._client = client
        self._clock = clock

    async def identity(self) -> str | None:
        """Return None: the server does not tell its store's identity."""
        return None

    async def check(self) -> None:
        """Read one pending action; raises SourceUnavailable or SourceRefused, one line without the address."""
        await self._pending(None, 1)

    async def close(self) -> None:
        """Return: the HTTP session belongs to the wiring."""

    async def page(self, cursor: str | None, *, limit: int, known: Known) -> Page:
        """Return one page, newest change first; raises SourceError, after which the cursor stays good.

        The reason `cursor_refused` asks for a new scan from the start.
        """
        enrolling = Enrolling(self._client, self._options, seen_at=self._clock.now())
        found = await self._pending(cursor, min(limit, _PAGE_LIMIT))
        shown = await enrolling.show(found.actions, known)
        problems = _problems(found, shown)
        if found.next_cursor is None and found.has_more:
            problems |= {Incomplete.HAS_MORE}
        if cursor is not None and found.next_cursor == cursor:
            problems |= {Incomplete.REPEATED_CURSOR}
        return Page(
            active=tuple(shown.active),
            next_cursor=found.next_cursor,
            problems=problems,
            delegations=tuple(shown.delegations),
            withheld=tuple(shown.withheld),
            unprojectable_count=shown.unprojectable_count,
            oldest_updated_at=found.oldest_updated_at,
        )

    async def session(self, session_id: str, *, known: Known) -> SessionView:
        """Return what is pending in the session now; an id the server does not know is SESSION_NOT_FOUND."""
        enrolling = Enrolling(self._client, self._options, seen_at=self._clock.now())
        if not _could_be_a_session(session_id) or await enrolling.session(session_id) is None:
            return SessionView((), frozenset({Incomplete.SESSION_NOT_FOUND}))
        found = await self._pending(None, _PAGE_LIMIT, session_id=session_id)
        shown = await enrolling.show(found.actions, known)
        problems = _problems(found, shown)
        if found.has_more:
            problems |= {Incomplete.HAS_MORE}
        return SessionView(tuple(shown.active), problems, tuple(shown.delegations), tuple(shown.withheld))

    async def observe(self, reference: Reference) -> Observation:
        """Return what the server says of the item now; whatever keeps it from saying is `unavailable`."""
        asked_at = self._clock.now()
        try:
            state, reason = await self._item(reference)
        except SourceError:
            state, reason = AttentionState.UNAVAILABLE, Evidence.STORE_UNAVAILABLE
        return Observation(reference, state, reason, asked_at)

    async def fanout(self, *, limit: int) -> Fanout:
        """Return how the runtime's own event delivery stands. Raises SourceError."""
        health = await self._client.get("/api/event-side-effects/health")
        query = {"limit": str(min(limit, FANOUT_LIMIT))}
        page = await self._client.get("/api/event-side-effects/deliveries", query)
        durable = health.body.get("durable")
        return fanout_of(durable if isinstance(durable, dict) else {}, page.body)

    async def _item(self, reference: Reference) -> tuple[AttentionState, Evidence]:
        if not reference.action_id.startswith("inbox_"):
            return AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE
        path = f"/api/inbox/{quote(reference.action_id, safe='')}"
        answer = await self._client.get(path, also=frozenset({_NOT_FOUND, _UNPROCESSABLE}))
        if answer.status != 200:
            # The session is gone, stands there anew, or is not ours to see.
            return AttentionState.UNAVAILABLE, Evidence.SESSION_UNAVAILABLE
        return item_state(parsed(ItemState, answer.body), reference.attention_id)

    async def _pending(self, cursor: str | None, limit: int, *, session_id: str | None = None) -> PendingActions:
        """Ask for pending actions; a page that is too large is asked for again with half as many rows."""
        query = {name: value for name, value in (("cursor", cursor), ("session_id", session_id)) if value is not None}
        refusals = frozenset({_BAD_REQUEST, _UNPROCESSABLE}) if cursor is not None else frozenset[int]()
        while True:
            answer = await self._client.get(
                "/api/pending-actions", {**query, "limit": str(limit)}, also=refusals | {_TOO_LARGE}
            )
            if answer.status == 200:
                return parsed(PendingActions, answer.body)
            if answer.status != _TOO_LARGE:
                raise SourceUnavailable(Incomplete.CURSOR_REFUSED, "the server does not take the scan's cursor")
            if limit == 1:
                raise SourceUnavailable(Incomplete.PAGE_TOO_LARGE, "one pending action is too large to read")
            limit //= 2


def _problems(found: PendingActions, shown: Shown) -> frozenset[Incomplete]:
    problems = set()
    if found.issues:
        problems.add(Incomplete.PENDING_ACTION_ISSUES)
    if shown.unprojectable_count:
        problems.add(Incomplete.UNPROJECTABLE_ACTION)
    return frozenset(problems)


def _could_be_a_session(session_id: str) -> bool:
    """Answer whether it is worth asking: Cayu 0.15's server fails with 500 over an id with a NUL."""
    is_sized = 0 < len(session_id) <= SESSION_ID_CHARS and session_id == session_id.strip()
    return is_sized and session_id.isprintable()
