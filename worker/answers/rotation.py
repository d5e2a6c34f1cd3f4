"""One step of a key's rotation at a time: prepare a new key; once every process has read it, let it sign."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from worker.answers.keyset import Keyset, activate, drop, prepare, prune
from worker.answers.keyset_file import FRESH_FOR, make_keyset, new_secret, read_keyset, write_keyset
from worker.answers.opening import FIRST_KID


class Step(StrEnum):
    """What a call did."""

    MADE = "made"  # there was no file; its one key signs
    PREPARED = "prepared"  # the new key verifies everywhere soon, and does not sign yet
    WAITING = "waiting"  # some process may not have read the prepared key yet
    ACTIVATED = "activated"  # the prepared key signs; the former one verifies until its tokens have expired


@dataclass(frozen=True, slots=True)
class Rotated:
    """What was done, to which key, which key signs now, and how long to wait before the next step."""

    step: Step
    kid: str
    active: str
    wait_seconds: float


def rotate(path: Path, *, now: datetime, maximum_ttl: timedelta) -> Rotated:
    """Take the next step with the keys of a file; raises SettingsError (one line)."""
    if not path.exists():
        made = make_keyset(path, FIRST_KID)
        return Rotated(Step.MADE, made.active_kid, made.active_kid, 0)
    keyset = read_keyset(path)
    prepared = _prepared(keyset)
    if prepared is None:
        kid = _next_kid(keyset)
        write_keyset(path, prepare(keyset, kid, new_secret()))
        return Rotated(Step.PREPARED, kid, keyset.active_kid, FRESH_FOR.total_seconds())
    wait = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC) + FRESH_FOR - now
    if wait > timedelta(0):
        return Rotated(Step.WAITING, prepared, keyset.active_kid, wait.total_seconds())
    write_keyset(path, prune(activate(keyset, prepared, now=now, maximum_ttl=maximum_ttl), now=now))
    return Rotated(Step.ACTIVATED, prepared, prepared, 0)


def drop_key(path: Path, kid: str) -> None:
    """Take a compromised key out of the file; raises SettingsError for the one that signs."""
    write_keyset(path, drop(read_keyset(path), kid))


def _prepared(keyset: Keyset) -> str | None:
    waiting = (kid for kid, key in keyset.keys.items() if kid != keyset.active_kid and key.not_after is None)
    return next(waiting, None)


def _next_kid(keyset: Keyset) -> str:
    number = len(keyset.keys) + 1
    while f"k{number}" in keyset.keys:
        number += 1
    return f"k{number}"
