"""Each row of the guide's table of states, stored with its evidence after one pass over a real store.

What Cayu 0.15 could not be made to commit is committed through its store, see tests/support/cayu_ends.py.
"""

import pytest

from reconciler.sources.protocol import Incomplete
from reconciler.states import TERMINAL_STATES, AttentionState, Evidence
from tests.support.cayu_ends import Ends

# The first test of a session waits until the stores are made: about half a minute of computing.
pytestmark = pytest.mark.timeout(400)

CLOSED, NO_EVIDENCE = Evidence.DURABLE_CLOSURE, Evidence.NO_TERMINAL_EVIDENCE
ENDS = {
    "ask": (AttentionState.RESOLVED, CLOSED),
    "approve": (AttentionState.RESOLVED, CLOSED),
    "recover": (AttentionState.RESOLVED, CLOSED),
    "confirmed-failure": (AttentionState.RESOLVED, CLOSED),
    "late-grant": (AttentionState.RESOLVED, CLOSED),
    "denied": (AttentionState.CANCELLED, CLOSED),
    "blocked": (AttentionState.CANCELLED, CLOSED),
    "interrupted": (AttentionState.SUPERSEDED, Evidence.DURABLE_SUPERSESSION),
    "expiring": (AttentionState.EXPIRED, CLOSED),
    "deleted": (AttentionState.UNAVAILABLE, Evidence.SESSION_UNAVAILABLE),
    "recreated": (AttentionState.UNAVAILABLE, Evidence.SESSION_REPLACED),
    "given-up": (AttentionState.UNAVAILABLE, NO_EVIDENCE),
    "recover-failed": (AttentionState.UNAVAILABLE, NO_EVIDENCE),
    "unknown-failure": (AttentionState.UNAVAILABLE, NO_EVIDENCE),
    "to-reconcile": (AttentionState.UNAVAILABLE, NO_EVIDENCE),
    "other-round": (AttentionState.UNAVAILABLE, NO_EVIDENCE),
    "flooded": (AttentionState.UNAVAILABLE, Evidence.INCOMPLETE_QUERY),
}
UNPROVEN = [name for name, (state, _) in ENDS.items() if state is AttentionState.UNAVAILABLE]


@pytest.mark.parametrize("name", ENDS)
def test_end_is_stored_with_the_runtimes_state_and_evidence(ends: Ends, name: str) -> None:
    row = ends.rows[name]

    assert (row.state, row.reason) == ENDS[name]
    assert [(step.to_state, step.reason) for step in ends.history[name]] == [
        (AttentionState.ACTIVE, Evidence.CURRENT_ACTION),
        ENDS[name],
    ]


@pytest.mark.parametrize("name", UNPROVEN)
def test_what_is_not_proven_is_kept_and_asked_again(ends: Ends, name: str) -> None:
    row = ends.rows[name]

    assert row.verify_failures == 1
    assert row.verify_due_at > row.observed_at
    assert not any(AttentionState(step.to_state) in TERMINAL_STATES for step in ends.history[name])


def test_grant_in_its_window_is_resolved_when_it_is_finished_after_the_deadline(ends: Ends) -> None:
    """Two hours past the deadline, by the runtime's own clock, the outcome is still open: nothing is expired by it."""
    uncertain = (AttentionState.UNAVAILABLE, Evidence.INCOMPLETE_QUERY)

    assert ends.late_grant == [uncertain, uncertain, (AttentionState.RESOLVED, CLOSED)]


def test_action_that_the_runtime_cannot_show_is_an_issue_and_the_pass_incomplete(ends: Ends) -> None:
    assert ends.while_uncertain.problems == {Incomplete.PENDING_ACTION_ISSUES}
    assert not ends.while_uncertain.is_complete
    assert ends.passed.is_complete


def test_request_made_anew_under_the_sessions_name_is_one_of_its_own(ends: Ends) -> None:
    assert ends.references["recreated"].attention_id not in ends.passed.shown
    assert len(ends.passed.shown) == len(set(ends.passed.shown) - {row.attention_id for row in ends.rows.values()}) + 1
