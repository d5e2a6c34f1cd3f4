"""Writes down how tries ended: attempts, the next status, and what follows from them, in one transaction a batch."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from reconciler import digests, outbox
from reconciler.reasons import AttemptOutcome, DecisionReason, DeliveryStatus, Verdict
from reconciler.tables import ATTEMPTS, DELIVERIES
from worker.channels.outcomes import FailureReason, Sent, Temporary, Unknown
from worker.delivery import claims, follow_ups, health, stand_ins
from worker.delivery.claims import Health
from worker.delivery.rows import Claimed, settled_among
from worker.delivery.tools import Tools
from worker.delivery.transitions import Judge, Past, Result, Transition

_FINAL = frozenset({DeliveryStatus.SENT, DeliveryStatus.DEAD, DeliveryStatus.CANCELLED})
_MILLISECOND = timedelta(milliseconds=1)
# What the column holds: a holder that died may be taken over after any time, and one number too large would stop
# the destination for ever.
_MAX_DURATION_MS = 2**31 - 1

_SET = (
    update(DELIVERIES)
    .where(DELIVERIES.c.id == bindparam("row_id"))
    .values(
        status=bindparam("new_status"),
        reason=bindparam("new_reason"),
        next_attempt_at=bindparam("new_next_attempt_at"),
        begun_at=bindparam("new_begun_at"),
        provider_ref=bindparam("new_provider_ref"),
        finished_at=bindparam("new_finished_at"),
        carrier_id=bindparam("new_carrier_id"),
        lease_id=None,
        leased_until=None,
    )
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A try and what became of its delivery."""

    result: Result
    transition: Transition


async def record(
    tools: Tools,
    destination: str,
    lease_id: str,
    results: Sequence[Result],
    unsent: Sequence[Claimed] = (),
    *,
    known: Health,
) -> Sequence[Entry]:
    """Record the tries of deliveries that are still ours and give `unsent` ones back; return what was recorded.

    A delivery that somebody else took over meanwhile is left to them. Raises SQLAlchemy's errors; then nothing is
    written and the same call may be made again.
    """
    ids = [result.row.id for result in results] + [row.id for row in unsent]
    async with tools.engine.begin() as connection:
        cases = await follow_ups.lock(connection, tools, [*(result.row for result in results), *unsent])
        ours = await claims.still_ours(connection, ids, lease_id)
        await give_back(connection, [row for row in unsent if row.id in ours])
        entries = await enter(
            connection, tools, destination, [result for result in results if result.row.id in ours], known
        )
        await follow_ups.plan(connection, tools, cases)
        return entries


async def rescue(tools: Tools, destination: str, lease_id: str, *, known: Health) -> tuple[int, Sequence[Entry]]:
    """Take over deliveries whose lease lapsed: what was begun may have arrived, the rest was never sent.

    Returns how many were taken over, and what was recorded of those that may have arrived.
    """
    async with tools.engine.begin() as connection:
        cases = await follow_ups.lock_lapsed(connection, tools, destination)
        rows = await claims.take_over(connection, tools, destination, lease_id)
        begun = await _begun_unrecorded(connection, rows)
        await give_back(connection, [row for row in rows if row.id not in begun], was_begun=False)
        now = tools.clock.now()
        results = [
            Result(row, Unknown(FailureReason.INTERRUPTED), row.begun_at, now - row.begun_at)
            for row in rows
            if row.id in begun and row.begun_at is not None
        ]
        entries = await enter(connection, tools, destination, results, known)
        await follow_ups.plan(connection, tools, cases)
        return len(rows), entries


async def enter(
    connection: AsyncConnection, tools: Tools, destination: str, results: Sequence[Result], known: Health
) -> Sequence[Entry]:
    """Write the tries and what follows from them, in the caller's transaction, which holds the rows."""
    if not results:
        return []
    past = await _past(connection, results)
    policy, now = tools.destinations[destination].channel.on_unknown, tools.clock.now()
    entries = [
        Entry(
            result,
            Judge(policy, tools.limits, now, tools.luck()).judge(result, past.get(result.row.id, Past())),
        )
        for result in results
    ]
    await connection.execute(insert(ATTEMPTS), [_attempt(entry) for entry in entries])
    weighed = [entry.transition for entry in entries if entry.result.row.carrier_id is None]  # one message, one outcome
    entries = await _settled_meanwhile(connection, tools, entries)
    await connection.execute(_SET, [_values(entry, now) for entry in entries])
    await digests.succeed(connection, [entry.result.row.id for entry in entries if _is_over(entry)])
    refused = [entry.result.row for entry in entries if _wants_stand_in(entry)]
    if refused:
        await stand_ins.stand_in(connection, tools, destination, refused)
    await health.weigh(connection, tools, destination, weighed, known)
    return entries


async def give_back(connection: AsyncConnection, rows: Sequence[Claimed], *, was_begun: bool = True) -> None:
    """Return deliveries as they were before the claim; one that was begun but not sent takes its try back."""
    if rows:
        await connection.execute(
            update(DELIVERIES)
            .where(DELIVERIES.c.id == bindparam("row_id"))
            .values(
                status=bindparam("new_status"),
                attempts=DELIVERIES.c.attempts - (1 if was_begun else 0),
                begun_at=bindparam("new_begun_at"),
                lease_id=None,
                leased_until=None,
            ),
            [
                {
                    "row_id": row.id,
                    "new_status": DeliveryStatus.PENDING.value,
                    "new_begun_at": row.begun_at,
                }
                for row in rows
            ],
        )


async def _begun_unrecorded(connection: AsyncConnection, rows: Sequence[Claimed]) -> frozenset[int]:
    """Of taken-over rows, those whose last begun try has no attempt: the holder ended between sending and recording."""
    begun = {row.id: row.attempts for row in rows if row.begun_at is not None}
    if not begun:
        return frozenset()
    recorded = await connection.execute(
        select(ATTEMPTS.c.delivery_id, ATTEMPTS.c.number).where(ATTEMPTS.c.delivery_id.in_(sorted(begun)))
    )
    done = {row.delivery_id for row in recorded if row.number >= begun[row.delivery_id]}
    return frozenset(begun) - done


async def _past(connection: AsyncConnection, results: Sequence[Result]) -> Mapping[int, Past]:
    """Only an outcome that is bounded by earlier ones needs them read."""
    asked = {
        result.row.id: result.row.forgiven_attempts
        for result in results
        if isinstance(result.outcome, Unknown)
        or (isinstance(result.outcome, Temporary) and result.outcome.reason is FailureReason.UNEXPECTED)
    }
    if not asked:
        return {}
    columns = ATTEMPTS.c
    rows = await connection.execute(
        select(columns.delivery_id, columns.number, columns.outcome, columns.reason).where(
            columns.delivery_id.in_(sorted(asked))
        )
    )
    past: dict[int, Past] = defaultdict(Past)
    for row in rows:
        if row.number > asked[row.delivery_id]:
            seen = past[row.delivery_id]
            past[row.delivery_id] = Past(
                seen.unknown + (row.outcome == AttemptOutcome.UNKNOWN.value),
                seen.unexpected + (row.reason == FailureReason.UNEXPECTED.value),
            )
    return past


async def _settled_meanwhile(connection: AsyncConnection, tools: Tools, entries: list[Entry]) -> list[Entry]:
    """A try that would be repeated, of a request that is over by now, ends: its settle must not wait for it."""
    again = [entry for entry in entries if entry.transition.status is DeliveryStatus.PENDING]
    over = await settled_among(connection, [entry.result.row for entry in again])
    ended = [_cancelled(entry) for entry in again if entry.result.row.opens in over]
    decisions = [
        stand_ins.decided(entry.result.row, Verdict.CANCELLED, DecisionReason.SETTLED_BEFORE_SENDING) for entry in ended
    ]
    await outbox.record_decisions(
        connection, [entry for entry in decisions if entry is not None], now=tools.clock.now()
    )
    changed = {entry.result.row.id: entry for entry in ended}
    return [changed.get(entry.result.row.id, entry) for entry in entries]


def _cancelled(entry: Entry) -> Entry:
    ended = replace(entry.transition, status=DeliveryStatus.CANCELLED, reason=DecisionReason.SETTLED_BEFORE_SENDING)
    return replace(entry, transition=ended)


def _is_over(entry: Entry) -> bool:
    return entry.transition.status in (DeliveryStatus.DEAD, DeliveryStatus.CANCELLED)


def _wants_stand_in(entry: Entry) -> bool:
    """What may have arrived is not told elsewhere: that would be a blind repeat."""
    transition = entry.transition
    return (
        transition.status is DeliveryStatus.DEAD
        and transition.begun_at is None
        and transition.attempt in (AttemptOutcome.PERMANENT, AttemptOutcome.TEMPORARY)
    )


def _attempt(entry: Entry) -> dict[str, Any]:
    result, transition = entry.result, entry.transition
    outcome, observation = result.outcome, result.observation
    return {
        "delivery_id": result.row.id,
        "number": result.row.attempts,
        "started_at": result.started_at,
        "duration_ms": min(max(0, result.duration // _MILLISECOND), _MAX_DURATION_MS),
        "outcome": transition.attempt.value,
        "reason": None if outcome is None or isinstance(outcome, Sent) else outcome.reason.value,
        "observed_state": observation.state.value if observation else None,
        "observed_reason": observation.reason.value if observation else None,
        "observed_at": observation.observed_at if observation else None,
        "provider_ref": outcome.provider_ref if isinstance(outcome, Sent) else None,
    }


def _values(entry: Entry, now: Any) -> dict[str, Any]:
    transition = entry.transition
    return {
        "row_id": entry.result.row.id,
        "new_status": transition.status.value,
        "new_reason": transition.reason.value,
        "new_next_attempt_at": transition.next_attempt_at,
        "new_begun_at": transition.begun_at,
        "new_provider_ref": transition.provider_ref,
        "new_finished_at": now if transition.status in _FINAL else None,
        # A dead letter is tried again by itself: a person may choose it alone.
        "new_carrier_id": None if _is_over(entry) else entry.result.row.carrier_id,
    }
