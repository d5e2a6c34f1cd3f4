"""docs/routing.md: every worked example is run, and says what the page says."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from worker.cli.main import main

PAGE = Path(__file__).parents[3] / "docs" / "routing.md"
EXAMPLE = re.compile(
    r"^## (?P<title>\d\. [^\n]*)\n.*?```toml\n(?P<routes>.*?)```\s*```json\n(?P<states>.*?)```\s*"
    r"```(?P<form>timeline|table)\n(?P<said>.*?)```",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Example:
    """One worked example: routes, what happens, and what the simulation says to it in which form."""

    title: str
    routes: str
    states: str
    form: str
    said: str


EXAMPLES = [Example(**match.groupdict()) for match in EXAMPLE.finditer(PAGE.read_text())]


def test_page_has_five_worked_examples() -> None:
    assert len(EXAMPLES) == 5


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_example_says_what_the_page_says(example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    routes, states = tmp_path / "routes.toml", tmp_path / "states.json"
    routes.write_text(example.routes)
    states.write_text(example.states)

    code = main(
        ["simulate", "--routes", str(routes), "--states", str(states)]
        + (["--timeline"] if example.form == "timeline" else [])
    )

    assert code == 0
    assert capsys.readouterr().out == example.said
