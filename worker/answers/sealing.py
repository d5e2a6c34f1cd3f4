"""Seals what the database must not hold in clear: requests, turns and answers of paused runs."""

import base64

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from worker.answers.keyset import SigningKey
from worker.answers.signer import KeysetSource

_PURPOSE = b"handbell.seal/v1"
_FERNET_KEY_BYTES = 32
_SEPARATOR = b":"


class KeysetSealer:
    """A sealer (`reconciler.pause_store.checkpoints.Sealer`) on the keys that sign.

    Each key seals with a key of its own, derived from it (HKDF-SHA-256, RFC 5869), so that a signature and a seal
    never share one. A key that verifies no more still unseals while it stands in the keyset. Raises
    KeysetUnavailableError where the keys cannot be read.
    """

    def __init__(self, keys: KeysetSource) -> None:
        self._keys = keys

    def seal(self, clear: bytes) -> bytes:
        """Return it encrypted and authenticated with the active key, whose id stands before it."""
        keyset = self._keys.current()
        return keyset.active_kid.encode() + _SEPARATOR + _fernet(keyset.active).encrypt(clear)

    def unseal(self, sealed: bytes) -> bytes:
        """Return it in clear; raises ValueError where no key of ours sealed it as it stands."""
        kid, separator, token = sealed.partition(_SEPARATOR)
        key = self._keys.current().keys.get(kid.decode("ascii", "replace"))
        if not separator or key is None:
            raise ValueError("not sealed with a key of ours")
        try:
            return _fernet(key).decrypt(token)
        except InvalidToken:
            raise ValueError("not sealed with a key of ours") from None


def _fernet(key: SigningKey) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=_FERNET_KEY_BYTES, salt=None, info=_PURPOSE).derive(key.secret)
    return Fernet(base64.urlsafe_b64encode(derived))
