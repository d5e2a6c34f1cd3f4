"""The receiver of one namespace: the four calls of the handoff, in terms of models and rows, without any HTTP."""

from datetime import timedelta
from typing import Any

from config.clock import Clock
from reconciler.handoff_store import HandoffStore, Report, ScanPosition
from reconciler.references import cayu_attention_id
from worker.web.intake import Batch, Intake
from worker.web.models import Observations, Reconciliation, ReferencesQuery, wire_reference
from worker.web.refusals import Code, Refused


class HandoffReceiver:
    """Does what the protocol asks and returns the JSON object to answer, after the commit.

    Every method raises Refused before anything is written, and SQLAlchemy's errors where the database fails: the
    call may then be repeated.
    """

    def __init__(self, intake: Intake, store: HandoffStore, clock: Clock, *, reconcile_every: timedelta) -> None:
        self._intake = intake
        self._store = store
        self._clock = clock
        self._reconcile_every = reconcile_every

    async def state(self) -> dict[str, Any]:
        """Tell where the sender's scan resumes, and how often we want a repair pass."""
        return {
            "scan_cursor": await self._store.scan_cursor(),
            "reconcile_interval_seconds": self._reconcile_every.total_seconds(),
        }

    async def accept(self, body: Observations) -> dict[str, Any]:
        """Take in observations; return what else we hold open of a session that was shown completely.

        Absence settles nothing: what was not shown is only asked about. The scan's position is kept after the
        observations, so a crash between the two repeats a page and skips none.
        """
        observed_at = self._clock.now()
        observations = [item.observation(observed_at=observed_at) for item in body.observations]
        for item in observations:
            if cayu_attention_id(item.reference) != item.reference.attention_id:
                raise Refused(Code.IDENTITY_MISMATCH, "an attention_id does not belong to its reference")
        scope = body.session_scope
        complete_session = scope.session_id if scope is not None and scope.complete else None
        verify = await self._intake.submit(Batch(observations, complete_session))
        if body.scan is not None:
            position = ScanPosition(body.scan.cursor, body.scan.complete)
            await self._store.keep_scan(position, now=self._clock.now())
        return {"accepted": len(observations), "verify": [wire_reference(reference) for reference in verify]}

    async def references(self, query: ReferencesQuery) -> dict[str, Any]:
        """List open requests in a constant order, a page at a time."""
        after_id = int(query.after) if query.after is not None else 0
        rows = await self._store.open_references(after_id, session_id=query.session_id, limit=query.limit + 1)
        page = rows[: query.limit]
        return {
            "items": [wire_reference(row.reference) for row in page],
            "next_after": str(page[-1].id) if len(rows) > len(page) else None,
        }

    async def report(self, body: Reconciliation) -> dict[str, Any]:
        """Keep what a repair pass reports, for `handbell status`."""
        await self._store.keep_report(
            Report(
                self._clock.now(),
                body.runtime_version,
                body.pages,
                body.observed,
                body.scan_complete,
                body.verify_complete,
                body.issues,
            )
        )
        return {"ok": True}
