"""The keys: no default, long enough, rotated with overlap, and read again as they change."""

import json
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from config.errors import SettingsError
from tests.contract.pause_tokens.keyset_kit import OTHER_SECRET, SECRET
from tests.contract.pause_tokens.store_kit import clock_at
from worker.answers.errors import KeysetUnavailableError
from worker.answers.keyset import SEALED_FOR, Keyset, SigningKey, activate, drop, prepare, prune
from worker.answers.keyset_file import (
    FRESH_FOR,
    REFRESH_AT_MOST_EVERY,
    FileKeyset,
    make_keyset,
    read_keyset,
    write_keyset,
)

NOW = clock_at().now()
DAY = timedelta(days=1)
ONE = Keyset("k1", {"k1": SigningKey(SECRET)})
TWO = prepare(ONE, "k2", OTHER_SECRET)


@pytest.mark.parametrize(
    ("active", "keys"),
    [
        ("k1", {}),
        ("k2", {"k1": SigningKey(SECRET)}),
        ("k1", {"k1": SigningKey(b"x" * 31)}),
        ("k1", {"k1": SigningKey(SECRET), "k2": SigningKey(b"")}),
        ("k1", {"k1": SigningKey(SECRET, not_after=NOW)}),
        ("k 1", {"k 1": SigningKey(SECRET)}),
        ("", {"": SigningKey(SECRET)}),
    ],
    ids=["empty", "no active", "short", "another short", "active ends", "bad id", "no id"],
)
def test_a_keyset_that_could_not_be_worked_with_is_refused_in_one_line(
    active: str, keys: dict[str, SigningKey]
) -> None:
    with pytest.raises(SettingsError) as caught:
        Keyset(active, keys)
    assert "\n" not in str(caught.value)


def test_no_repr_shows_a_secret() -> None:
    assert "1111" not in repr(ONE)


def test_a_key_is_prepared_before_it_signs_and_ends_after_its_tokens() -> None:
    rotated = activate(TWO, "k2", now=NOW, maximum_ttl=DAY)

    assert (TWO.active_kid, rotated.active_kid) == ("k1", "k2")
    assert rotated.keys["k1"].not_after == NOW + DAY
    assert rotated.active.not_after is None
    assert activate(rotated, "k2", now=NOW + DAY, maximum_ttl=DAY) == rotated


def test_a_rotation_that_would_go_back_or_replace_is_refused() -> None:
    rotated = activate(TWO, "k2", now=NOW, maximum_ttl=DAY)

    with pytest.raises(SettingsError):
        prepare(ONE, "k1", OTHER_SECRET)
    with pytest.raises(SettingsError):
        prepare(ONE, "k2", b"short")
    for keyset, kid in ((ONE, "k9"), (rotated, "k1")):
        with pytest.raises(SettingsError):
            activate(keyset, kid, now=NOW, maximum_ttl=DAY)
    with pytest.raises(SettingsError):
        drop(ONE, "k1")


def test_ended_keys_are_kept_to_unseal_and_pruned_in_the_end() -> None:
    rotated = activate(TWO, "k2", now=NOW, maximum_ttl=DAY)

    assert set(prune(rotated, now=NOW + DAY + SEALED_FOR).keys) == {"k1", "k2"}
    assert set(prune(rotated, now=NOW + DAY + SEALED_FOR + DAY).keys) == {"k2"}
    assert set(drop(rotated, "k1").keys) == {"k2"}


def test_a_keyset_is_written_for_its_owner_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "keyset.json"
    rotated = activate(TWO, "k2", now=NOW, maximum_ttl=DAY)

    write_keyset(path, ONE)
    write_keyset(path, rotated)

    assert read_keyset(path) == rotated
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["keyset.json"]


def test_two_changes_at_once_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "keyset.json"
    write_keyset(path, ONE)
    (tmp_path / "keyset.json.new").touch()

    with pytest.raises(SettingsError, match="another change"):
        write_keyset(path, TWO)
    assert read_keyset(path) == ONE


def test_a_first_run_makes_a_random_key_and_never_replaces_one(tmp_path: Path) -> None:
    first = make_keyset(tmp_path / "a.json", "k1")

    assert make_keyset(tmp_path / "a.json", "k1") == first
    assert make_keyset(tmp_path / "b.json", "k1").active.secret != first.active.secret
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(SettingsError):
        make_keyset(tmp_path / "a.json", "k1")
    with pytest.raises(SettingsError):
        make_keyset(tmp_path / "no folder" / "a.json", "k1")


WHOLE: dict[str, Any] = {"active": "k1", "keys": {"k1": {"secret": "MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE="}}}


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "SECRET", json.dumps(WHOLE | {"more": 1}), json.dumps(WHOLE | {"active": "k2"}),
        json.dumps({"active": "k1", "keys": {"k1": {"secret": "SECRET!"}}}),
        json.dumps({"active": "k1", "keys": {"k1": {"secret": "U0VDUkVU"}}}),
        json.dumps({"active": "k1", "keys": {"k1": {"secret": "SECRET", "not_after": "2026-01-01T00:00:00"}}}),
        " " * 70_000,
    ],
    ids=range(10),
)  # fmt: skip
def test_a_file_that_is_no_keyset_is_refused_in_one_line_without_its_secret(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keyset.json"
    path.write_text(json.dumps(WHOLE))
    assert read_keyset(path) == ONE
    path.write_text(text)

    with pytest.raises(SettingsError) as caught:
        read_keyset(path)
    assert "\n" not in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_without_a_file_there_is_no_key(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no default key"):
        read_keyset(tmp_path / "keyset.json")


@pytest.mark.statement("S9")
async def test_a_file_that_goes_away_makes_the_keys_unavailable_until_it_is_back(tmp_path: Path) -> None:
    path, clock = tmp_path / "keyset.json", clock_at()
    keys = FileKeyset(path, clock)

    with pytest.raises(KeysetUnavailableError):
        keys.current()
    write_keyset(path, ONE)
    assert keys.current() == ONE
    path.unlink()
    assert keys.current() == ONE
    await clock.advance(FRESH_FOR)
    for look in (keys.current, keys.refreshed, keys.current):
        with pytest.raises(KeysetUnavailableError) as caught:
            look()
        assert caught.value.code == "keyset_unavailable"
    write_keyset(path, TWO)
    assert keys.current() == TWO


async def test_another_look_is_taken_when_asked_for_and_not_too_often(tmp_path: Path) -> None:
    path, clock = tmp_path / "keyset.json", clock_at()
    write_keyset(path, ONE)
    keys = FileKeyset(path, clock)
    keys.current()
    write_keyset(path, TWO)

    assert keys.refreshed() == ONE
    await clock.advance(REFRESH_AT_MOST_EVERY)
    assert keys.current() == ONE
    assert keys.refreshed() == TWO
