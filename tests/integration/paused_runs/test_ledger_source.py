"""The source over real ledgers of both shapes: what it shows, what it proves, and what it refuses in one line."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from sqlalchemy import Row

from config.clock import FrozenClock
from config.database import database_url
from reconciler.errors import SourceMissing, SourceRefused
from reconciler.references import Reference
from reconciler.sources.pause_ledger import LedgerReader
from reconciler.sources.pauses import Options, PausesSource, build, pause_attention_id
from reconciler.sources.protocol import Incomplete
from reconciler.sources.services import SourceServices
from reconciler.states import AttentionState, Evidence, Kind
from tests.support.pause_ledgers import NOW, Ledger
from tests.support.sources import SEEN_AT, every_page

NOTHING_PROVEN = (AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE)
MAYBE_LATE = (AttentionState.UNAVAILABLE, Evidence.INCOMPLETE_QUERY)


def reference(jti: str = "a", namespace: str = "test") -> Reference:
    return Reference(pause_attention_id(namespace, jti), "", "", Kind.USER_INPUT, jti)


async def proof(ledger: Ledger, *, after: float = 0, jti: str = "a") -> tuple[AttentionState, Evidence]:
    """Return what the ledger proves of a token, some seconds after SEEN_AT."""
    source = ledger.source(FrozenClock(SEEN_AT + timedelta(seconds=after)))
    seen = await source.observe(reference(jti))
    await source.close()
    return seen.state, seen.reason


def test_identity_is_of_namespace_and_token_id_and_cannot_be_one_of_cayus() -> None:
    made = {pause_attention_id(namespace, jti) for namespace in ("a", "b") for jti in ("a", "b", 'a","b')}

    assert len(made) == 6
    assert all(identity.startswith("symfonic_") and len(identity) == 9 + 64 for identity in made)


async def test_what_was_issued_is_shown_once_and_without_a_private_name(any_ledger: Ledger) -> None:
    await any_ledger.issue("a")
    await any_ledger.issue("b", name="wire-transfer-of-acme")
    await any_ledger.issue("redeemed")
    await any_ledger.consume("redeemed")
    await any_ledger.issue("old", expires_at=NOW - 1)
    source = any_ledger.source()

    shown = [item for page in await every_page(source, limit=1) for item in page.active]
    await source.close()

    assert {(item.reference.action_id, item.reference.kind) for item in shown} == {
        ("a", Kind.USER_INPUT),
        ("b", Kind.AGENT_INPUT),
    }
    assert "wire-transfer" not in repr(shown)
    assert shown[0].request is not None
    assert shown[0].request.paused_at == SEEN_AT - timedelta(seconds=60)
    assert shown[0].reference.session_id == ("session-of-b" if any_ledger.is_ours else "")


async def test_window_grace_and_redemption_decide(any_ledger: Ledger) -> None:
    await any_ledger.issue("a", expires_at=NOW + 100)

    assert await proof(any_ledger, after=100) == (AttentionState.ACTIVE, Evidence.CURRENT_ACTION)
    assert await proof(any_ledger, after=101) == MAYBE_LATE
    assert await proof(any_ledger, after=161) == (AttentionState.EXPIRED, Evidence.DURABLE_CLOSURE)
    await any_ledger.consume("a", consumed_at=NOW + 99)
    assert await proof(any_ledger, after=161) == (AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE)


async def test_row_that_vanishes_proves_nothing(any_ledger: Ledger) -> None:
    await any_ledger.issue("a")
    await any_ledger.execute("DELETE FROM {issued}")

    assert await proof(any_ledger) == NOTHING_PROVEN
    assert await proof(any_ledger, after=10_000) == NOTHING_PROVEN


async def test_contradiction_proves_nothing_and_is_told_once(any_ledger: Ledger) -> None:
    await any_ledger.issue("a")
    await any_ledger.consume("a", scope_hash="another")
    source = any_ledger.source()

    with structlog.testing.capture_logs() as logs:
        seen = [await source.observe(reference()) for _ in range(2)]
    await source.close()

    assert [(item.state, item.reason) for item in seen] == [NOTHING_PROVEN] * 2
    assert [entry["event"] for entry in logs] == ["pauses.contradiction"]


async def test_redemption_without_an_issuance_proves_nothing(documented_ledger: Ledger) -> None:
    await documented_ledger.consume("a")

    assert await proof(documented_ledger) == NOTHING_PROVEN


class SlowReader(LedgerReader):
    """An hour passes between the statement and its answer."""

    def __init__(self, ledger: Ledger, clock: FrozenClock) -> None:
        url = database_url(ledger.url, relative_to=Path("/"))
        super().__init__(url, issued_table="issued_tokens", consumed_table="token_consumptions")
        self._clock = clock

    async def look(self, jti: str) -> Row[Any]:
        row = await super().look(jti)
        await self._clock.advance(timedelta(hours=1))
        return row


async def test_what_a_slow_reading_did_not_show_is_not_taken_for_absent(sqlite_pause_ledger: Ledger) -> None:
    """The grace ends while the statement runs; a redemption may have been committed in between."""
    await sqlite_pause_ledger.issue("a", expires_at=NOW + 1)
    clock = FrozenClock(SEEN_AT)
    options = Options(ledger=sqlite_pause_ledger.url)
    source = PausesSource("test", options, SlowReader(sqlite_pause_ledger, clock), clock)

    seen = await source.observe(reference())
    await source.close()

    assert (seen.state, seen.observed_at) == (AttentionState.ACTIVE, SEEN_AT)


async def test_expiry_needs_the_servers_clock_too(postgres_pause_ledger: Ledger) -> None:
    """Our clock runs years ahead of the server's."""
    far = datetime.fromtimestamp(32_503_680_000, tz=SEEN_AT.tzinfo)
    await postgres_pause_ledger.issue("a", expires_at=32_503_600_000.0)
    source = postgres_pause_ledger.source(FrozenClock(far))

    seen = await source.observe(reference())
    await source.close()

    assert seen.state is AttentionState.ACTIVE


async def test_revoked_token_is_cancelled_and_answer_tokens_of_ours_are_no_requests(
    sqlite_pause_ledger: Ledger,
) -> None:
    await sqlite_pause_ledger.issue("a", revoked_at=NOW)
    await sqlite_pause_ledger.issue("ours", namespace="prod", attention_id="attention_1")
    source = sqlite_pause_ledger.source()

    [page] = await every_page(source)
    await source.close()

    assert page.active == []
    assert await proof(sqlite_pause_ledger) == (AttentionState.CANCELLED, Evidence.DURABLE_CLOSURE)
    assert await proof(sqlite_pause_ledger, jti="ours") == NOTHING_PROVEN


async def test_row_that_cannot_be_a_request_is_counted_and_the_pass_is_incomplete(documented_ledger: Ledger) -> None:
    await documented_ledger.issue("x" * 5000)
    await documented_ledger.issue("good")
    source = documented_ledger.source()

    [page] = await every_page(source)
    await source.close()

    assert [item.reference.action_id for item in page.active] == ["good"]
    assert (page.unprojectable_count, page.problems) == (1, {Incomplete.UNPROJECTABLE_ACTION})


async def test_token_of_another_namespace_is_not_this_ones(sqlite_pause_ledger: Ledger) -> None:
    await sqlite_pause_ledger.issue("a")
    source = sqlite_pause_ledger.source()

    seen = await source.observe(replace(reference(), attention_id=pause_attention_id("other", "a")))
    await source.close()

    assert (seen.state, seen.reason) == NOTHING_PROVEN


async def test_nothing_is_written_and_no_file_is_made(sqlite_pause_ledger: Ledger, tmp_path: Path) -> None:
    await sqlite_pause_ledger.engine.dispose()
    before = Path(sqlite_pause_ledger.url.removeprefix("sqlite:///")).read_bytes()
    source = sqlite_pause_ledger.source()
    await source.check()
    await every_page(source)
    await source.close()

    missing = Ledger(f"sqlite:///{tmp_path / 'missing.db'}").source()
    with pytest.raises(SourceMissing, match=r"missing\.db, is not there"):
        await missing.identity()

    assert Path(sqlite_pause_ledger.url.removeprefix("sqlite:///")).read_bytes() == before
    assert not (tmp_path / "missing.db").exists()


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        ((), "has no table issued_tokens"),
        (("CREATE TABLE issued_tokens (jti TEXT)",), "has no column expires_at in the table issued_tokens"),
        (
            ("CREATE TABLE issued_tokens (jti TEXT, scope_hash TEXT, name TEXT, issued_at TEXT, expires_at TEXT)",),
            r"has no epoch seconds in issued_tokens\.expires_at",
        ),
    ],
)
async def test_database_of_another_shape_is_refused_in_one_line(
    tmp_path: Path, statements: tuple[str, ...], says: str
) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path / 'other.db'}")
    await ledger.execute("CREATE TABLE something (id INTEGER)")
    for statement in statements:
        await ledger.execute(statement)
    source = ledger.source()

    with pytest.raises(SourceRefused, match=says) as refused:
        await source.check()
    await source.close()
    await ledger.engine.dispose()

    assert "\n" not in str(refused.value)


async def test_wrong_password_and_no_url_are_refused_without_repeating_them(postgres_url: str) -> None:
    source = Ledger(postgres_url.replace("/test_", "/no_such_")).source()
    with pytest.raises(SourceRefused, match="refuses the user, the password or the name"):
        await source.check()
    await source.close()

    with pytest.raises(ValueError, match=r"^ledger names 'mysql'"):
        build("n", Options(ledger="mysql://u:hunter2@h/x"), SourceServices(FrozenClock(SEEN_AT), Path("/")))
