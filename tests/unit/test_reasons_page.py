"""The page about words and reasons says what the closed sets say, and nothing in them is without a meaning."""

from enum import StrEnum
from pathlib import Path

import pytest

from reconciler.reasons import DecisionReason
from worker.channels.outcomes import FailureReason
from worker.reference.meanings import meanings
from worker.reference.reasons_page import CHAPTERS, Chapter, reasons_page

PAGE = Path(__file__).parents[2] / "docs" / "reasons.md"
MEANINGS = {}


class Shown(StrEnum):
    """Words for this test."""

    COMMENTED = "commented"  # what stands behind it
    TABLED = "tabled"  # less than the table says
    BARE = "bare"


MEANINGS[Shown.TABLED] = "what the table says"


def test_page_is_what_the_words_say() -> None:
    """Where it fails: `make docs`."""
    assert PAGE.read_text() == reasons_page()


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.title)
def test_every_word_has_a_meaning(chapter: Chapter) -> None:
    assert [word for word, meaning in meanings(chapter.words).items() if not meaning] == []


def test_meaning_comes_from_the_comment_or_the_table_beside_the_words() -> None:
    assert meanings(Shown) == {
        Shown.COMMENTED: "what stands behind it",
        Shown.TABLED: "what the table says",
        Shown.BARE: "",
    }


def test_the_two_sets_that_share_a_column_share_no_word() -> None:
    """The reason of a delivery is a word of either."""
    assert {word.value for word in DecisionReason} & {word.value for word in FailureReason} == set()
