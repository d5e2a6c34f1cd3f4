"""The source of paused runs whose pauses are tokens in an issuance ledger (symfonic's human-interaction capability).

A token is a request: it is active while it is issued, in its window and unredeemed. The ledger knows nothing of
sessions and people, so what is shown is that somebody is waited for; what is needed to answer comes by the capture
hook (worker/web/capture.py).
"""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import structlog

from config.clock import Clock
from config.database import database_url
from config.errors import SettingsError
from reconciler.errors import SourceError, SourceUnavailable
from reconciler.references import Observation, Reference, Request
from reconciler.sources.pause_ledger import LedgerReader, Position, is_instant
from reconciler.sources.pause_options import Options
from reconciler.sources.pause_states import LedgerRow, kind_of, state_of
from reconciler.sources.protocol import Incomplete, Known, Page
from reconciler.sources.services import SourceServices
from reconciler.states import AttentionState, Evidence
from reconciler.tables import ACTION_ID_CHARS, SESSION_ID_CHARS

__all__ = ["TYPE", "Options", "PausesSource", "build", "pause_attention_id"]

TYPE = "pauses"

# Before it no runtime paused, after it `datetime` ends: outside it a time says nothing.
_EPOCH_SECONDS = (1, 253_402_300_799)

log = structlog.get_logger()


def build(namespace: str, options: Options, services: SourceServices) -> "PausesSource":
    """Make the source of `namespace`; opens nothing yet. Raises ValueError where `ledger` names no database."""
    try:
        url = database_url(options.ledger.get_secret_value(), relative_to=services.folder)
    except SettingsError as error:
        raise ValueError(str(error).replace("[database] url", "ledger")) from None
    reader = LedgerReader(url, issued_table=options.issued_table, consumed_table=options.consumed_table)
    return PausesSource(namespace, options, reader, services.clock)


def pause_attention_id(namespace: str, jti: str) -> str:
    """Return the identity of a pause: of its token's id alone, since call ids repeat and a row has nothing else."""
    identity = json.dumps(["symfonic/v1", namespace, jti], ensure_ascii=True, separators=(",", ":"))
    return "symfonic_" + hashlib.sha256(identity.encode("ascii")).hexdigest()


class PausesSource:
    """Scans a ledger and observes its tokens. It cannot be asked about a session: a ledger has none."""

    def __init__(self, namespace: str, options: Options, reader: LedgerReader, clock: Clock) -> None:
        self.options = options
        self._namespace = namespace
        self._reader = reader
        self._clock = clock
        self._alarmed: set[str] = set()

    async def identity(self) -> str | None:
        """Return None, once the ledger was looked at: it names no store. Raises SourceError where it cannot be read."""
        await self._reader.check()
        return None

    async def check(self) -> None:
        """Raise SourceError unless the ledger can be read as configured."""
        await self._reader.check()

    async def close(self) -> None:
        """Close the connections."""
        await self._reader.close()

    async def page(self, cursor: str | None, *, limit: int, known: Known) -> Page:
        """Return one page of live tokens, newest first; raises SourceUnavailable or SourceRefused."""
        del known  # nothing can be withheld by a ledger
        asked_at = self._clock.now()
        after = None if cursor is None else _position(cursor)
        rows = await self._reader.outstanding(now=asked_at.timestamp(), after=after, limit=limit)
        active = [self._shown(row, asked_at) for row in rows if _is_projectable(row)]
        unprojectable = len(rows) - len(active)
        last = rows[-1] if len(rows) == limit else None
        return Page(
            active=active,
            next_cursor=None if last is None else json.dumps([last.issued_at, last.jti]),
            problems=frozenset({Incomplete.UNPROJECTABLE_ACTION}) if unprojectable else frozenset(),
            unprojectable_count=unprojectable,
            oldest_updated_at=_instant(rows[-1].issued_at) if rows else None,
        )

    async def observe(self, reference: Reference) -> Observation:
        """Return what the ledger proves about the reference's token; whatever keeps it from answering is unavailable.

        An active answer carries the request, so that it also enrolls a token that no scan has shown yet. The clock is
        read before the ledger: a redemption that is committed after a slow reading is never taken for absent at a time
        when nobody looked.
        """
        asked_at = self._clock.now()
        if pause_attention_id(self._namespace, reference.action_id) != reference.attention_id:
            return _unavailable(reference, Evidence.NO_TERMINAL_EVIDENCE, asked_at)
        try:
            row = await self._reader.look(reference.action_id)
        except SourceError as error:
            log.warning("source.unanswered", namespace=self._namespace, reason=error.reason)
            return _unavailable(reference, Evidence.STORE_UNAVAILABLE, asked_at)
        return self._observation(reference, row, asked_at)

    def reference(self, jti: str, name: str, session_id: str = "") -> Reference:
        """Return the reference of a token of this namespace; a session id that no index holds is left out."""
        identity = pause_attention_id(self._namespace, jti)
        return Reference(identity, _indexable(session_id), "", kind_of(name), action_id=jti)

    def _shown(self, row: Any, asked_at: datetime) -> Observation:
        return Observation(
            self.reference(row.jti, row.name, row.session_id),
            AttentionState.ACTIVE,
            Evidence.CURRENT_ACTION,
            asked_at,
            Request(paused_at=_instant(row.issued_at)),
        )

    def _observation(self, reference: Reference, row: Any, asked_at: datetime) -> Observation:
        found = LedgerRow(
            issued=None if row.scope_hash is None else (row.scope_hash, row.name),
            expires_at=row.expires_at if is_instant(row.expires_at) else None,
            consumed=None if row.consumed_scope_hash is None else (row.consumed_scope_hash, row.consumed_name),
            is_revoked=row.revoked_at is not None,
        )
        if found.is_contradictory and reference.attention_id not in self._alarmed:
            self._alarmed.add(reference.attention_id)
            log.error("pauses.contradiction", namespace=self._namespace, attention_id=reference.attention_id)
        # Where the server has a clock, a window is over only when both say so.
        now = asked_at.timestamp()
        if row.database_now is not None:
            now = min(now, float(row.database_now))
        state, reason = state_of(found, now=now, grace=self.options.grace)
        is_active = state is AttentionState.ACTIVE
        request = Request(paused_at=_instant(row.issued_at)) if is_active else None
        return Observation(reference, state, reason, asked_at, request)


def _unavailable(reference: Reference, reason: Evidence, at: datetime) -> Observation:
    return Observation(reference, AttentionState.UNAVAILABLE, reason, at)


def _is_projectable(row: Any) -> bool:
    """Return whether a row can be a request of ours: text ids that fit, and times in epoch seconds."""
    are_texts = all(isinstance(text, str) and "\x00" not in text for text in (row.jti, row.name, row.session_id))
    fits = are_texts and 0 < len(row.jti) <= ACTION_ID_CHARS
    return fits and is_instant(row.issued_at) and is_instant(row.expires_at)


def _indexable(session_id: str) -> str:
    """Return the id where an index entry of PostgreSQL (about 2,700 bytes) holds it."""
    return session_id if len(session_id.encode("utf-8", "replace")) <= SESSION_ID_CHARS else ""


def _instant(epoch_seconds: float) -> datetime | None:
    first, last = _EPOCH_SECONDS
    if not is_instant(epoch_seconds) or not first <= epoch_seconds <= last:
        return None  # an older token does not say when it was issued
    return datetime.fromtimestamp(epoch_seconds, tz=UTC)


def _position(cursor: str) -> Position:
    try:
        issued_at, jti = json.loads(cursor)
    except (ValueError, TypeError):
        issued_at, jti = None, None
    if not is_instant(issued_at) or not isinstance(jti, str):
        raise SourceUnavailable(Incomplete.CURSOR_REFUSED, "the cursor is not one of ours")
    return Position(issued_at, jti)
