"""Many pending requests in one SQLite store: a real pause, copied with plain SQL (a real one costs 0.7 s of CPU).

A copy can be paged through and observed (state active). It cannot be answered: its digests are the original's.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from cayu.storage import SQLiteSessionStore

from worker.scripted.runtime import close_store

# What a session consists of; Cayu's triggers keep the rest.
_TABLES = {
    "cayu_sessions": "id",
    "cayu_events": "session_id",
    "cayu_checkpoints": "session_id",
    "cayu_session_labels": "session_id",
    "cayu_persisted_event_side_effects": "session_id",
}
_BATCH = 500
_STEP = timedelta(microseconds=7)

Rows = dict[str, list[dict[str, Any]]]


async def clone_session(path: str, session_id: str, count: int, *, at: datetime, prefix: str = "clone") -> None:
    """Copy the session `count` times as `prefix`-0000000 and so on, each changed a little later than the one before.

    The first was changed `at`.

    Every occurrence of its id is replaced, so that id must be a text that occurs nowhere else.
    """
    store = SQLiteSessionStore(path)
    try:
        connection = store._connection  # triggers call functions that only Cayu's own connections have
        connection.row_factory = None
        original = {table: _rows(connection, table, key, session_id) for table, key in _TABLES.items()}
        assert original["cayu_sessions"], f"there is no session {session_id}"
        (sequence,) = connection.execute("SELECT MAX(sequence) FROM cayu_events").fetchone()
        for begin in range(0, count, _BATCH):
            with connection:
                for number in range(begin, min(count, begin + _BATCH)):
                    copied = _copy(original, session_id, f"{prefix}-{number:07d}", at + _STEP * number, sequence)
                    sequence += len(original["cayu_events"])
                    for table, rows in copied.items():
                        _insert(connection, table, rows)
    finally:
        await close_store(store)


async def touch_sessions(path: str, session_ids: list[str], *, at: datetime) -> None:
    """Have the sessions changed `at`, as any update of one does; a copy takes no other change."""
    store = SQLiteSessionStore(path)
    try:
        with store._connection as connection:
            for session_id in session_ids:
                changed_at = _like("", at)
                connection.execute("UPDATE cayu_sessions SET updated_at = ? WHERE id = ?", (changed_at, session_id))
    finally:
        await close_store(store)


def _rows(connection: Any, table: str, key: str, session_id: str) -> list[dict[str, Any]]:
    order = " ORDER BY sequence" if table == "cayu_events" else ""
    found = connection.execute(f"SELECT * FROM {table} WHERE {key} = ?{order}", (session_id,))
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found]


def _insert(connection: Any, table: str, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))


def _copy(original: Rows, old_id: str, new_id: str, at: datetime, sequence: int) -> Rows:
    [session] = original["cayu_sessions"]
    texts = {old_id: new_id, session["instance_id"]: str(uuid4())}
    texts |= {event["event_id"]: str(uuid4()) for event in original["cayu_events"]}
    sequences = {event["sequence"]: sequence + step for step, event in enumerate(original["cayu_events"], start=1)}
    changed_at = _like(session["updated_at"], at)
    copied = {table: [_renamed(row, texts, sequences) for row in rows] for table, rows in original.items()}
    copied["cayu_sessions"][0] |= {"updated_at": changed_at, "last_activity_at": changed_at}
    for row in copied["cayu_persisted_event_side_effects"]:
        row["status"] = "delivered"
    return copied


def _renamed(row: dict[str, Any], texts: dict[str, str], sequences: dict[int, int]) -> dict[str, Any]:
    changed = {}
    for name, value in row.items():
        if isinstance(value, str):
            for old, new in texts.items():
                value = value.replace(old, new)
        elif name.endswith("sequence"):
            value = sequences.get(value, value)
        changed[name] = value
    return changed


def _like(sample: str, at: datetime) -> str:
    text = at.isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z") if sample.endswith("Z") else text
