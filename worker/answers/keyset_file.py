"""The keyset as a file: read strictly, written whole or not at all, and read again as it changes.

{"active": "k1", "keys": {"k1": {"secret": "<base64url>", "not_after": "2026-03-01T00:00:00Z" or null}}}
"""

import base64
import binascii
import json
import os
import secrets
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, SecretStr, ValidationError

from config.clock import Clock
from config.errors import SettingsError
from worker.answers.errors import KeysetUnavailableError
from worker.answers.keyset import MIN_SECRET_BYTES, Keyset, SigningKey

FRESH_FOR = timedelta(seconds=30)
"""How long a keyset is used before the file is read again: also how long a dropped key may still verify."""

REFRESH_AT_MOST_EVERY = timedelta(seconds=5)
"""How often a token with an unknown key id may cause another reading: such ids cost nothing to invent."""

MAX_KEYSET_BYTES = 65_536


class _KeyEntry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    secret: SecretStr
    not_after: AwareDatetime | None = None


class _KeysetFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    active: str
    keys: dict[str, _KeyEntry]


def read_keyset(path: Path) -> Keyset:
    """Return the keyset in a file; raises SettingsError, in one line that holds no secret, where there is none."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_KEYSET_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"the keyset {path} cannot be read ({error.strerror}): there is no default key") from None
    if len(text) > MAX_KEYSET_BYTES:
        raise SettingsError(f"the keyset {path} is longer than {MAX_KEYSET_BYTES} bytes: is it the right file?")
    try:
        entries = _KeysetFile.model_validate_json(text)
        keys = {
            kid: SigningKey(_decoded(entry.secret.get_secret_value()), entry.not_after)
            for kid, entry in entries.keys.items()
        }
    except (ValidationError, ValueError):
        # Not chained: a parser's error quotes what it was given.
        raise SettingsError(f"the keyset {path} is not a keyset: see docs/pause-tokens.md for its form") from None
    return Keyset(entries.active, keys)


def write_keyset(path: Path, keyset: Keyset) -> None:
    """Replace the file by this keyset, for its owner's eyes alone; a reader sees the old or the new one, whole.

    Raises SettingsError where another writer is at it, or the folder cannot be written to.
    """
    body = {
        "active": keyset.active_kid,
        "keys": {
            kid: {
                "secret": base64.urlsafe_b64encode(key.secret).decode(),
                "not_after": None if key.not_after is None else key.not_after.isoformat(),
            }
            for kid, key in keyset.keys.items()
        },
    }
    staging = path.with_name(path.name + ".new")
    try:
        descriptor = os.open(staging, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(body, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        staging.replace(path)
    except FileExistsError:
        raise SettingsError(f"{staging} is there: another change of the keys is under way, or delete it") from None
    except OSError as error:
        raise SettingsError(f"the keyset {path} cannot be written ({error.strerror})") from None


def make_keyset(path: Path, kid: str) -> Keyset:
    """Return the keyset of the file, made with one random key where there is no file (an embedded first run).

    Raises SettingsError where a file is there and cannot be used: it is never replaced.
    """
    if not path.exists():
        write_keyset(path, Keyset(kid, {kid: SigningKey(new_secret())}))
    return read_keyset(path)


def new_secret() -> bytes:
    """Return a random secret of the shortest length that may be used."""
    return secrets.token_bytes(MIN_SECRET_BYTES)


class FileKeyset:
    """The keyset of a file, as it is now.

    Where the file cannot be read the keys are unavailable: a key that was dropped in the meantime must not go on
    verifying from memory.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._keyset: Keyset | None = None
        self._read_at: datetime | None = None

    def current(self) -> Keyset:
        """Return the keyset, at most FRESH_FOR old; raises KeysetUnavailableError."""
        return self._newer_than(FRESH_FOR)

    def refreshed(self) -> Keyset:
        """Return the keyset after another look at the file, made at most every REFRESH_AT_MOST_EVERY."""
        return self._newer_than(REFRESH_AT_MOST_EVERY)

    def _newer_than(self, age: timedelta) -> Keyset:
        now = self._clock.now()
        if self._keyset is not None and self._read_at is not None and now - self._read_at < age:
            return self._keyset
        try:
            keyset = read_keyset(self._path)
        except SettingsError:
            self._keyset = None
            raise KeysetUnavailableError("the keys cannot be read now") from None
        self._keyset, self._read_at = keyset, now
        return keyset


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("not base64url") from None
