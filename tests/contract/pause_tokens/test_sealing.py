"""What is sealed is read back with its key only."""

from datetime import timedelta

import pytest
from cryptography.fernet import Fernet, InvalidToken

from tests.contract.pause_tokens.keyset_kit import OTHER_SECRET, Keys
from tests.contract.pause_tokens.store_kit import clock_at
from worker.answers.errors import KeysetUnavailableError
from worker.answers.keyset import activate, drop, prepare
from worker.answers.sealing import KeysetSealer


def test_what_was_sealed_is_read_back_after_a_rotation_and_not_after_its_key_is_dropped() -> None:
    keys = Keys()
    sealer = KeysetSealer(keys)
    sealed = sealer.seal(b"SECRET question")
    keys.keyset = activate(
        prepare(keys.keyset, "k2", OTHER_SECRET), "k2", now=clock_at().now(), maximum_ttl=timedelta(days=1)
    )

    assert b"SECRET" not in sealed
    assert sealer.unseal(sealed) == b"SECRET question"
    assert sealer.seal(b"x").startswith(b"k2:")
    keys.keyset = drop(keys.keyset, "k1")
    with pytest.raises(ValueError, match="not sealed"):
        sealer.unseal(sealed)


def test_what_was_not_sealed_by_us_is_refused() -> None:
    sealer = KeysetSealer(Keys())
    sealed = sealer.seal(b"x")

    for other in (b"", b"k1", b"k1:", b"k2" + sealed[2:], sealed[:-4] + b"AAAA", b"\xff:" + sealed[3:], sealed[3:]):
        with pytest.raises(ValueError, match="not sealed"):
            sealer.unseal(other)


def test_a_signature_and_a_seal_never_share_a_key() -> None:
    keys = Keys()
    _, _, token = KeysetSealer(keys).seal(b"x").partition(b":")

    with pytest.raises(InvalidToken):
        Fernet(b"MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=").decrypt(token)


def test_keys_out_of_reach_are_said_so() -> None:
    keys = Keys()
    keys.is_down = True

    with pytest.raises(KeysetUnavailableError):
        KeysetSealer(keys).seal(b"x")
