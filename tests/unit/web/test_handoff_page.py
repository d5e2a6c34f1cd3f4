"""docs/handoff-v1.md names every refusal with its status."""

from pathlib import Path

from worker.web.refusals import STATUSES

PAGE = (Path(__file__).parents[3] / "docs" / "handoff-v1.md").read_text()


def test_page_names_every_refusal_and_its_status() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]

    for code, status in STATUSES.items():
        assert any(f"`{code.value}`" in row and str(status) in row for row in rows), code
