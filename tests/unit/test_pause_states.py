"""What a ledger's rows prove, row by row of the table."""

from datetime import timedelta

import pytest

from reconciler.sources.pause_states import LedgerRow, kind_of, state_of
from reconciler.states import AttentionState, Evidence, Kind

EXPIRES = 1000.0
MINE = ("scope", "ask_user")
NOTHING_PROVEN = (AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE)
MAYBE_LATE = (AttentionState.UNAVAILABLE, Evidence.INCOMPLETE_QUERY)
ACTIVE = (AttentionState.ACTIVE, Evidence.CURRENT_ACTION)
RESOLVED = (AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE)
EXPIRED = (AttentionState.EXPIRED, Evidence.DURABLE_CLOSURE)
CANCELLED = (AttentionState.CANCELLED, Evidence.DURABLE_CLOSURE)

ISSUED = LedgerRow(MINE, EXPIRES)
CONSUMED = LedgerRow(MINE, EXPIRES, MINE)


@pytest.mark.parametrize(
    ("row", "now", "proves"),
    [
        pytest.param(ISSUED, 1000.0, ACTIVE, id="live through its expiry"),
        pytest.param(ISSUED, 1000.001, MAYBE_LATE, id="a claim in time may still commit"),
        pytest.param(ISSUED, 1060.0, MAYBE_LATE, id="to the end of the grace"),
        pytest.param(ISSUED, 1060.001, EXPIRED, id="over after the grace"),
        pytest.param(CONSUMED, 999.0, RESOLVED, id="redeemed"),
        pytest.param(CONSUMED, 5000.0, RESOLVED, id="a redemption wins over expiry"),
        pytest.param(LedgerRow(MINE, EXPIRES, MINE, is_revoked=True), 999.0, RESOLVED, id="and over a revocation"),
        pytest.param(LedgerRow(MINE, EXPIRES, is_revoked=True), 999.0, CANCELLED, id="revoked"),
        pytest.param(LedgerRow(None), 999.0, NOTHING_PROVEN, id="a row that vanished proves nothing"),
        pytest.param(LedgerRow(None, consumed=MINE), 999.0, NOTHING_PROVEN, id="redeemed and never issued"),
        pytest.param(LedgerRow(MINE, EXPIRES, ("other", "ask_user")), 999.0, NOTHING_PROVEN, id="another scope"),
        pytest.param(LedgerRow(MINE, EXPIRES, ("scope", "approve")), 9999.0, NOTHING_PROVEN, id="another name"),
        pytest.param(LedgerRow(MINE, None), 9999.0, NOTHING_PROVEN, id="an expiry that is no instant"),
        pytest.param(LedgerRow(MINE, float("nan")), 9999.0, MAYBE_LATE, id="NaN is never over"),
    ],
)
def test_rows_prove(row: LedgerRow, now: float, proves: tuple[AttentionState, Evidence]) -> None:
    assert state_of(row, now=now, grace=timedelta(seconds=60)) == proves


def test_only_the_built_in_interaction_is_named() -> None:
    assert (kind_of("ask_user"), kind_of("wire-transfer-of-acme")) == (Kind.USER_INPUT, Kind.AGENT_INPUT)
