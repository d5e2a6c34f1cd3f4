"""The marker that ties a test to a numbered statement, and the rig in both modes."""

import pytest

from tests.contract.pause_tokens.kit import MODES, Rig


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "statement(*numbers): the statements and traps that the test proves")


@pytest.fixture(params=MODES)
def rig(request: pytest.FixtureRequest) -> Rig:
    """A working deployment, once in library mode and once in operated mode."""
    return Rig(mode=request.param)
