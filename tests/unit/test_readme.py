"""README says what a newcomer can do as it stands there."""

import re
from pathlib import Path

from config.loading import load_configuration
from worker.app import check_tables

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


async def test_configuration_of_start_it_is_one(tmp_path: Path) -> None:
    """All but its secret, which stands in a file of another machine."""
    (tmp_path / "slack").write_text("xoxb-1\n")
    section = README.partition("\n## Start it\n")[2].partition("\n## ")[0]
    (table,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    (tmp_path / "handbell.toml").write_text(table.replace("/run/secrets/slack", "slack"))

    configuration = load_configuration(environ={}, cwd=tmp_path)
    await check_tables(configuration)

    assert list(configuration.settings.channels) == ["mail", "ops"]


def test_every_page_is_linked() -> None:
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}

    assert pages <= set(re.findall(r"\]\(([^)]+)\)", README))


def test_every_make_target_is_there() -> None:
    targets = set(re.findall(r"^make ([a-z]+)", README, re.MULTILINE))

    assert targets
    assert targets <= set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
