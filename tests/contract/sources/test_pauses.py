"""The suite for every source, on issuance ledgers of both shapes."""

from collections.abc import AsyncIterator

import pytest

from reconciler.references import Reference
from reconciler.sources.protocol import Observes, RefreshesSessions, Scans
from reconciler.sources.testing.conformance import CHECKS, Check, Subject
from tests.support.pause_ledgers import NOW, Ledger


@pytest.fixture
async def subject(any_ledger: Ledger) -> AsyncIterator[Subject]:
    """Give a source over a ledger in which four runs wait, two of them since the same moment."""
    for number in range(4):
        await any_ledger.issue(f"jti-{number}", issued_at=NOW - 60 + number % 2)
    source = any_ledger.source()

    async def settle() -> Reference:
        await any_ledger.consume("jti-0")
        return source.reference("jti-0", "ask_user")

    yield Subject(source, settle, any_ledger.break_down, secrets=("jti-0",))
    await source.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_ledger_keeps_the_promise(check: Check, subject: Subject) -> None:
    await check(subject)


def test_a_ledger_scans_and_observes_and_knows_no_sessions(subject: Subject) -> None:
    assert isinstance(subject.source, Scans)
    assert isinstance(subject.source, Observes)
    assert not isinstance(subject.source, RefreshesSessions)
