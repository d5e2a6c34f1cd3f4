"""The credentials of a handoff source: made once, kept private, hashed, several at a time."""

import hashlib
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from config.errors import SettingsError
from worker.web.tokens import Tokens, export_lines, first_run_token, token_path


def test_token_may_be_kept_as_its_digest() -> None:
    digest = "sha256:" + hashlib.sha256(b"secret").hexdigest()

    tokens = Tokens([digest, "plain"])

    assert [tokens.accept(said) for said in ("secret", "plain", digest, "")] == [True, True, False, False]


@pytest.mark.parametrize("configured", [[], [""], [" x"], ["sha256:abc"], ["sha256:" + "zz" * 32]])
def test_token_that_can_never_match_is_refused_at_the_start(configured: list[str]) -> None:
    with pytest.raises(SettingsError):
        Tokens(configured)


def test_first_run_token_is_made_once_and_private(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: first_run_token(tmp_path, "prod"), range(8)))

    assert len(set(made)) == 1
    assert len(made[0]) >= 43
    assert stat.S_IMODE(token_path(tmp_path, "prod").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["handoff-prod.token"]
    assert first_run_token(tmp_path, "stage") != made[0]


def test_token_file_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    token_path(tmp_path, "prod").write_text("\n")

    with pytest.raises(SettingsError, match="empty"):
        first_run_token(tmp_path, "prod")
    with pytest.raises(SettingsError, match="cannot be used"):
        first_run_token(tmp_path / "missing", "prod")


def test_export_lines_connect_an_agent() -> None:
    assert export_lines("https://handbell.example.com/", "prod", "t") == (
        "export CAYU_ATTENTION_HANDOFF_URL=https://handbell.example.com/handoff/prod",
        "export CAYU_ATTENTION_HANDOFF_TOKEN=t",
    )
