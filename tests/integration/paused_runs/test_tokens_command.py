"""`handbell tokens`: read from the ledger, changed by a person's word, recorded."""

import json
import os
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, insert, select

from config.metadata import METADATA
from reconciler.pause_store.tables import CONSUMPTION, ISSUANCE, PAUSE_TABLES
from reconciler.tables import AUDIT
from worker.answers.keyset_file import read_keyset
from worker.cli.main import main


@dataclass
class Cli:
    """The command on a migrated database of its own."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def __post_init__(self) -> None:
        self.config = self.folder / "handbell.toml"
        self.keyset = self.folder / "keys.json"
        self.config.write_text('[database]\nurl = "sqlite:///handbell.db"\n[answers]\nkeyset = "keys.json"\n')
        self.engine = create_engine(f"sqlite:///{self.folder / 'handbell.db'}")

    def __call__(self, *arguments: str) -> tuple[int, list[Any], str]:
        """Return the exit code, the JSON lines, and what stderr says."""
        code = main(["tokens", *arguments, "--json", "--config", str(self.config)])
        captured = self.capsys.readouterr()
        return code, [json.loads(line) for line in captured.out.splitlines()], captured.err

    def issue(self, jti: str, *, lasts: float = 600, **changes: Any) -> None:
        values = {
            "jti": jti,
            "scope_hash": "s",
            "session_id": "",
            "run_id": "",
            "call_id": "",
            "name": "ask_user",
            "request_hash": "h",
            "issued_at": time.time() - 60,
            "expires_at": time.time() + lasts,
            "legacy_pinned": False,
        }
        with self.engine.begin() as connection:
            connection.execute(insert(ISSUANCE).values(values | changes))

    def audited(self) -> list[tuple[str, str]]:
        with self.engine.connect() as connection:
            rows = connection.execute(select(AUDIT.c.action, AUDIT.c.subject).order_by(AUDIT.c.id))
            return [(row.action, row.subject) for row in rows]


@pytest.fixture
def cli(migrated_sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    assert migrated_sqlite_url.endswith("handbell.db")
    return Cli(tmp_path, capsys)


def test_outstanding_are_those_that_can_still_be_redeemed(cli: Cli) -> None:
    cli.issue("later", lasts=900, attention_id="attention_1", namespace="prod")
    cli.issue("sooner")
    cli.issue("expired", lasts=-1)
    cli.issue("spent")
    with cli.engine.begin() as connection:
        spent = {"jti": "spent", "scope_hash": "s", "name": "ask_user", "consumed_at": 1.0, "claim_id": "c"}
        connection.execute(insert(CONSUMPTION).values(spent))

    code, shown, _ = cli("outstanding")

    assert (code, [token["jti"] for token in shown]) == (0, ["sooner", "later"])
    assert (shown[1]["attention_id"], shown[1]["namespace"]) == ("attention_1", "prod")
    assert datetime.fromisoformat(shown[0]["expires_at"]) > datetime.now(UTC)


def test_revoked_token_is_outstanding_no_more_and_the_deed_is_recorded(cli: Cli) -> None:
    cli.issue("a", key_id="k1")
    cli.issue("b", key_id="k1")

    assert cli("revoke", "a")[:2] == (0, [{"revoked": 1}])
    assert cli("revoke", "a")[:2] == (2, [{"revoked": 0}])
    assert cli("revoke", "--key", "k1")[:2] == (0, [{"revoked": 1}])
    assert cli("outstanding")[:2] == (0, [])
    assert cli.audited() == [("tokens.revoke", "a"), ("tokens.revoke", "k1")]


def test_rotation_prepares_waits_and_then_signs(cli: Cli) -> None:
    made = cli("rotate")
    prepared = cli("rotate")
    waiting = cli("rotate")
    earlier = time.time() - 31
    os.utime(cli.keyset, (earlier, earlier))
    activated = cli("rotate")

    assert [(code, line[0]["step"], line[0]["active"]) for code, line, _ in (made, prepared, waiting, activated)] == [
        (0, "made", "k1"),
        (3, "prepared", "k1"),
        (3, "waiting", "k1"),
        (0, "activated", "k2"),
    ]
    keyset = read_keyset(cli.keyset)
    former = keyset.keys["k1"].not_after
    assert former is not None
    assert former - datetime.now(UTC) > timedelta(hours=23)
    assert cli.keyset.stat().st_mode & 0o777 == 0o600
    assert all("secret" not in json.dumps(line) for _, line, _ in (made, prepared, activated))


def test_dropped_key_takes_its_tokens_with_it_and_the_signing_one_is_kept(cli: Cli) -> None:
    cli("rotate")
    cli("rotate")
    cli.issue("a", key_id="k2")

    assert cli("rotate", "--drop", "k2")[:2] == (0, [{"step": "dropped", "kid": "k2", "revoked": 1}])
    code, _, said = cli("rotate", "--drop", "k1")

    assert (code, "is signing: activate another one" in said) == (2, True)
    assert list(read_keyset(cli.keyset).keys) == ["k1"]


def test_retired_format_is_over_once_the_horizon_is_reached_and_nothing_is_live(cli: Cli) -> None:
    cli.issue("legacy", lasts=600, legacy_pinned=True)
    at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()

    without = cli("drain-proof")
    recorded = cli("horizon", at, "--because", "the new format is everywhere")
    again = cli("horizon", at)
    past = cli("horizon", "2020-01-01T00:00:00Z")
    shown = cli("horizon")
    proof = cli("drain-proof")

    assert (without[0], without[1][0]["reason"]) == (3, "no retirement horizon is recorded")
    assert recorded[0] == 0
    assert (again[0], "stands already" in again[2]) == (2, True)
    assert (past[0], "lies in the future" in past[2]) == (2, True)
    assert shown[1] == [{"horizon": {"at": at, "reason": "the new format is everywhere"}}]
    assert (proof[0], proof[1][0]["drained"], proof[1][0]["scope"]) == (3, False, "deployment")
    assert proof[1][0]["outstanding"] == ["legacy"]


def test_ledger_of_a_runtime_is_read_where_it_is_named(cli: Cli) -> None:
    other = create_engine(f"sqlite:///{cli.folder / 'ledger.db'}")
    METADATA.create_all(other, tables=list(PAUSE_TABLES))
    own, cli.engine = cli.engine, other
    cli.issue("of-the-runtime")
    cli.engine = own

    code, shown, _ = cli("outstanding", "--ledger", "sqlite:///ledger.db")

    assert (code, [token["jti"] for token in shown]) == (0, ["of-the-runtime"])
    assert cli("outstanding")[1] == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("outstanding", "--ledger", "sqlite:///missing.db"), r"missing\.db is not there \(nothing was created\)"),
        (("outstanding", "--ledger", "mysql://u:hunter2@h/x"), "--ledger names 'mysql'"),
        (("horizon", "tomorrow"), "'tomorrow' is no instant"),
        (("horizon", "2030-01-01T00:00:00"), "has no zone"),
        (("rotate", "--drop", "k1"), "the keyset .* cannot be read"),
    ],
    ids=str,
)
def test_bad_input_is_one_line(cli: Cli, arguments: tuple[str, ...], says: str) -> None:
    code, shown, said = cli(*arguments)

    assert (code, shown, said.count("\n")) == (2, [], 1)
    assert "hunter2" not in said
    assert re.search(says, said), said


def test_without_a_keyset_beside_a_shared_database_nothing_is_made_up(cli: Cli) -> None:
    cli.config.write_text('[database]\nurl = "sqlite:///handbell.db"\n')

    code, _, said = cli("rotate")

    assert (code, "[answers] keyset is not set" in said) == (2, True)
