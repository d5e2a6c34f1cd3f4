"""The keys that sign answer tokens: which one signs, which ones still verify, and how one follows another.

Rotation overlaps. A new key is first *prepared*: every process can verify with it and none signs yet. Then it is
*activated*: it signs from now on, and the former key goes on verifying until the longest-lived of its tokens has
expired. A compromised key is *dropped*: its tokens are refused at once. Whoever drops it revokes its rows too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from config.errors import SettingsError

MIN_SECRET_BYTES = 32
"""A key for HMAC-SHA-256 has at least the hash's length: RFC 7518, section 3.2."""

SEALED_FOR = timedelta(days=30)
"""How long a key that verifies no more is kept to unseal what it sealed."""

_KID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A secret, and the last instant at which it verifies; None while no other key follows it."""

    secret: bytes = field(repr=False)
    not_after: datetime | None = None

    def verifies_at(self, now: datetime) -> bool:
        """Return whether a token that this key signed is still looked at."""
        return self.not_after is None or now <= self.not_after


@dataclass(frozen=True, slots=True)
class Keyset:
    """Keys by their ids, one of them active. Raises SettingsError for a keyset that could not be worked with."""

    active_kid: str
    keys: Mapping[str, SigningKey]

    def __post_init__(self) -> None:
        for kid, key in self.keys.items():
            if not _KID.fullmatch(kid):
                raise SettingsError("a key's id is 1 to 64 letters, digits, '-' and '_': correct the keyset")
            if len(key.secret) < MIN_SECRET_BYTES:
                raise SettingsError(
                    f"the key {kid!r} is {len(key.secret)} bytes long: use {MIN_SECRET_BYTES} random bytes or more"
                )
        active = self.keys.get(self.active_kid)
        if active is None:
            raise SettingsError("the keyset's active key is not among its keys: correct the keyset")
        if active.not_after is not None:
            raise SettingsError("the keyset's active key has an end: activate another one, or remove its not_after")
        object.__setattr__(self, "keys", MappingProxyType(dict(self.keys)))

    @property
    def active(self) -> SigningKey:
        """The key that signs."""
        return self.keys[self.active_kid]


def prepare(keyset: Keyset, kid: str, secret: bytes) -> Keyset:
    """Return the keyset with one more key, which verifies and does not sign yet.

    Raises SettingsError where the id is taken: a key is never replaced under its id.
    """
    if kid in keyset.keys:
        raise SettingsError(f"the keyset has a key {kid!r} already: choose another id")
    return replace(keyset, keys={**keyset.keys, kid: SigningKey(secret)})


def activate(keyset: Keyset, kid: str, *, now: datetime, maximum_ttl: timedelta) -> Keyset:
    """Return the keyset with this key signing; the former one verifies for the longest lifetime of a token more.

    Activating the active key changes nothing. Raises SettingsError for a key that is not there or has ended.
    """
    if kid == keyset.active_kid:
        return keyset
    key = keyset.keys.get(kid)
    if key is None or key.not_after is not None:
        raise SettingsError(f"the key {kid!r} cannot be activated: prepare a new one first")
    former = replace(keyset.active, not_after=now + maximum_ttl)
    return Keyset(kid, {**keyset.keys, keyset.active_kid: former})


def drop(keyset: Keyset, kid: str) -> Keyset:
    """Return the keyset without a compromised key; raises SettingsError for the active one."""
    if kid == keyset.active_kid:
        raise SettingsError(f"the key {kid!r} is signing: activate another one before dropping it")
    return replace(keyset, keys={other: key for other, key in keyset.keys.items() if other != kid})


def prune(keyset: Keyset, *, now: datetime) -> Keyset:
    """Return the keyset without the keys that ended so long ago that nothing they sealed is kept."""
    kept = {kid: key for kid, key in keyset.keys.items() if key.not_after is None or now <= key.not_after + SEALED_FOR}
    return replace(keyset, keys=kept)
