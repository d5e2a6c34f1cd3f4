"""The page about operations names what there is: alerts, notices, keys, commands, exit codes, links."""

import re
from pathlib import Path

import pytest
from arq import constants

from reconciler.notices import NoticeKind
from sinks.emit import names
from worker.cli import main
from worker.jobs import SWEEP_QUEUE, TICK_QUEUE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text()
RULES = (ROOT / "deploy" / "prometheus" / "handbell.rules.yml").read_text()
PAGES = [ROOT / "README.md", ROOT / "sinks" / "emit" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def rows(title: str) -> set[str]:
    """Return the words that the rows of a chapter's tables begin with."""
    chapter = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in chapter.splitlines() if line.startswith("|")]
    return {
        word for cell in cells for word in re.findall(r"`([^`]+)`|(?<=\s)(\d+)(?=[\s,])", cell) for word in word if word
    }


def test_every_alert_is_explained() -> None:
    assert rows("Watching it") == set(re.findall(r"alert: (\w+)", RULES))


def test_every_notice_says_what_to_do() -> None:
    assert rows("Notices") == {kind.value for kind in NoticeKind}


def test_every_key_is_listed() -> None:
    arqs = (constants.job_key_prefix, constants.in_progress_key_prefix, constants.retry_key_prefix)

    assert rows("Redis") == {
        names.STREAM,
        f"{names.REPLY_PREFIX}*",
        names.CONSUMER_KEY,
        f"{names.RECOVERY_PREFIX}*",
        "handbell:bell:*",
        TICK_QUEUE,
        SWEEP_QUEUE,
        *(f"{prefix}*" for prefix in (*arqs, constants.result_key_prefix)),
        constants.abort_jobs_ss,
    }


def test_every_exit_code_is_listed() -> None:
    codes = {main.DONE, main.FAILED, main.WRONG, main.INCOMPLETE}

    assert {str(code) for code in codes} <= rows("Exit codes")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_on_a_page_is_one(page: Path) -> None:
    commands = set(re.findall(r"(?:^|`|    )handbell ([a-z][a-z-]*)", page.read_text(), re.MULTILINE))
    known = set(re.findall(r"^    ([a-z-]+)(?: |$)", main.build_parser().format_help(), re.MULTILINE))

    assert commands <= known
