"""Over random orders of observations, terminal states never change and absence never closes."""

import asyncio
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.reasons import Door
from reconciler.states import TERMINAL_STATES, AttentionState
from reconciler.sweep import Mode
from tests.support.databases import engine_for
from tests.support.paging_source import (
    ACTIVE,
    CANCELLED,
    EXPIRED,
    RESOLVED,
    SUPERSEDED,
    UNAVAILABLE,
    UNREACHABLE,
    observation,
)
from tests.support.reconciling import NAMESPACE, Reconciling

WHAT = [ACTIVE, UNAVAILABLE, UNREACHABLE, RESOLVED, CANCELLED, SUPERSEDED, EXPIRED]
orders = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(WHAT)), min_size=1, max_size=12)
# A sweep in between shows nothing at all: the source has forgotten every request, which proves nothing.
steps = st.lists(st.one_of(st.none(), st.tuples(st.integers(1, 3), st.sampled_from(WHAT))), min_size=1, max_size=10)


@given(order=orders)
@settings(max_examples=25, deadline=None)
def test_first_terminal_state_stands_whatever_comes_after(migrated_sqlite_file: Path, order: list) -> None:
    expected: dict[str, AttentionState] = {}
    for number, (state, _) in order:
        name = f"attention_{number:04d}"
        if name not in expected:
            if not state.is_terminal:
                expected[name] = state
        elif not expected[name].is_terminal:
            expected[name] = state

    found = asyncio.run(_play(migrated_sqlite_file, order))

    assert found == {name: state.value for name, state in expected.items()}


@given(order=steps)
@settings(max_examples=15, deadline=None)
def test_absence_from_a_pass_never_closes(migrated_sqlite_file: Path, order: list) -> None:
    seen_terminal = {f"attention_{step[0]:04d}" for step in order if step and step[1][0].is_terminal}

    found = asyncio.run(_play(migrated_sqlite_file, order))

    closed = {name for name, state in found.items() if AttentionState(state) in TERMINAL_STATES}
    assert closed <= seen_terminal


async def _play(template: Path, order: list) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = shutil.copy(template, Path(folder) / "handbell.db")
        engine = engine_for(f"sqlite:///{path}")
        reconciling = Reconciling(engine)
        for step in order:
            if step is None:
                await reconciling.sweeper.sweep(NAMESPACE, Mode.FULL)
            else:
                await reconciling.notifications.apply(NAMESPACE, [observation(*step)], door=Door.PUSH)
        found = await reconciling.states()
        await engine.dispose()
    return found
