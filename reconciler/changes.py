"""The statements that change what is known of requests, for `Notifications.apply` and inside its transaction."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from config.statements import insert_ignoring
from reconciler.cases import CASE_COLUMNS, case_from
from reconciler.plan import Case
from reconciler.reasons import Door
from reconciler.references import Observation, storable_text
from reconciler.states import OPEN_STATES, AttentionState, Evidence
from reconciler.tables import HISTORY, ID_CHARS, NOTIFICATIONS

_OPEN_WORDS = sorted(state.value for state in OPEN_STATES)


@dataclass(frozen=True, slots=True)
class Change:
    """A request that is new (`old` is None) or has another state than before; `case` is how it stands now."""

    case: Case
    old: AttentionState | None


Made = list[tuple[Change, Observation]]


@dataclass(frozen=True, slots=True)
class Standing:
    """What the database says of a request now."""

    id: int
    state: AttentionState
    reason: Evidence


async def standing(connection: AsyncConnection, namespace: str, attention_ids: Sequence[str]) -> Mapping[str, Standing]:
    """Return those of the requests that are enrolled in the namespace, by attention id."""
    columns = NOTIFICATIONS.c
    rows = await connection.execute(
        select(columns.attention_id, columns.id, columns.state, columns.reason).where(
            columns.namespace == namespace, columns.attention_id.in_(attention_ids)
        )
    )
    return {
        attention_id: Standing(row_id, AttentionState(state), Evidence(reason))
        for attention_id, row_id, state, reason in rows
    }


async def enroll(connection: AsyncConnection, namespace: str, items: Sequence[Observation], *, now: datetime) -> Made:
    """Insert the requests that nobody else inserted meanwhile; return the changes that are ours."""
    if not items:
        return []
    by_id = {item.reference.attention_id: item for item in items}
    statement = insert_ignoring(connection, NOTIFICATIONS).returning(*CASE_COLUMNS)
    rows = await connection.execute(statement, [_row(namespace, item, now) for item in items])
    return [(_change(row, None), by_id[row.attention_id]) for row in rows]


async def move(
    connection: AsyncConnection, items: Sequence[Observation], known: Mapping[str, Standing], *, now: datetime
) -> Made:
    """Bring open requests to another state (or another reason); return the changes of state that are ours.

    One UPDATE for each (old state, new state, reason), by primary key and by the old state: a set-based join over
    JSON makes SQLite scan the table for every row. Who loses the race against another observer changes nothing.
    """
    groups: dict[tuple[AttentionState, AttentionState, Evidence], dict[int, Observation]] = defaultdict(dict)
    await _lock_in_order(connection, [known[item.reference.attention_id].id for item in items])
    for item in items:
        row = known[item.reference.attention_id]
        groups[row.state, item.state, item.reason][row.id] = item
    made: Made = []
    for (old, new, reason), members in sorted(groups.items()):
        values = {
            "state": new.value,
            "reason": reason.value,
            "observed_at": min(item.observed_at for item in members.values()),
            "verify_failures": 0,
            "verify_due_at": now,
        }
        if new is not old:
            values["state_changed_at"] = now
        rows = await connection.execute(
            update(NOTIFICATIONS)
            .where(
                NOTIFICATIONS.c.id.in_(sorted(members)),
                NOTIFICATIONS.c.state == old.value,
                NOTIFICATIONS.c.state.in_(_OPEN_WORDS),
            )
            .values(values)
            .returning(*CASE_COLUMNS)
        )
        if new is not old:
            made += [(_change(row, old), members[row.id]) for row in rows]
    return made


async def _lock_in_order(connection: AsyncConnection, ids: Sequence[int]) -> None:
    """Whoever locks several requests does so in the order of their ids, or two of them could wait for each other."""
    if len(ids) > 1 and connection.dialect.name != "sqlite":
        await connection.execute(
            select(NOTIFICATIONS.c.id)
            .where(NOTIFICATIONS.c.id.in_(sorted(ids)))
            .order_by(NOTIFICATIONS.c.id)
            .with_for_update(key_share=True)
        )


async def touch(connection: AsyncConnection, items: Sequence[Observation], known: Mapping[str, Standing]) -> None:
    """Keep when a source last said the same of an open request."""
    if items:
        await connection.execute(
            update(NOTIFICATIONS)
            .where(
                NOTIFICATIONS.c.id.in_(sorted(known[item.reference.attention_id].id for item in items)),
                NOTIFICATIONS.c.state.in_(_OPEN_WORDS),
            )
            .values(observed_at=min(item.observed_at for item in items))
        )


async def record(connection: AsyncConnection, made: Made, *, door: Door, now: datetime) -> None:
    """Append a history row for each change."""
    rows = [
        _history(change.case.notification_id, change.old, item, door, now, is_conflict=False) for change, item in made
    ]
    if rows:
        await connection.execute(insert(HISTORY), rows)


async def record_conflicts(
    connection: AsyncConnection,
    items: Sequence[Observation],
    known: Mapping[str, Standing],
    *,
    door: Door,
    now: datetime,
) -> int:
    """Record, once each, that a settled request was later seen in another terminal state; return how many are new."""
    if not items:
        return 0
    columns = HISTORY.c
    ids = sorted(known[item.reference.attention_id].id for item in items)
    rows = await connection.execute(
        select(columns.notification_id, columns.to_state).where(columns.notification_id.in_(ids), columns.is_conflict)
    )
    recorded = {(row.notification_id, row.to_state) for row in rows}
    fresh = []
    for item in items:
        row = known[item.reference.attention_id]
        if (row.id, item.state.value) not in recorded:
            fresh.append(_history(row.id, row.state, item, door, now, is_conflict=True))
    if fresh:
        await connection.execute(insert(HISTORY), fresh)
    return len(fresh)


def _change(row: Row[Any], old: AttentionState | None) -> Change:
    return Change(case_from(row), old)


def _row(namespace: str, item: Observation, now: datetime) -> dict[str, Any]:
    reference, request = item.reference, item.request
    assert request is not None, "only an observation that carries its request enrolls"
    return {
        "namespace": namespace,
        "attention_id": reference.attention_id,
        "kind": reference.kind.value,
        "session_id": reference.session_id,
        "session_instance_id": reference.session_instance_id,
        "action_id": reference.action_id,
        "round_id": reference.round_id,
        "tool_call_id": reference.tool_call_id,
        "source_sequence": reference.source_sequence,
        "agent_name": _fact(request.agent_name),
        "requester": _fact(request.requester),
        "environment_name": _fact(request.environment_name),
        "labels": {storable_text(key): storable_text(value) for key, value in request.labels.items()},
        "public_session_id": _whole(request.public_session_id),
        "paused_at": request.paused_at,
        "state": item.state.value,
        "reason": item.reason.value,
        "observed_at": item.observed_at,
        "first_seen_at": now,
        "state_changed_at": now,
        "verify_due_at": now,
    }


def _fact(text: str | None) -> str | None:
    """What only describes a request must never keep it from being stored."""
    return None if text is None else storable_text(text)[:ID_CHARS]


def _whole(text: str | None) -> str | None:
    """Return a text that names something, None where it could not be stored whole: cut it would name another."""
    return text if text is not None and storable_text(text) == text and len(text) <= ID_CHARS else None


def _history(
    notification_id: int,
    old: AttentionState | None,
    item: Observation,
    door: Door,
    now: datetime,
    *,
    is_conflict: bool,
) -> dict[str, Any]:
    return {
        "notification_id": notification_id,
        "from_state": old.value if old else None,
        "to_state": item.state.value,
        "reason": item.reason.value,
        "door": door.value,
        "observed_at": item.observed_at,
        "recorded_at": now,
        "is_conflict": is_conflict,
    }
