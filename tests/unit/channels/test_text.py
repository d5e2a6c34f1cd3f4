"""Untrusted text is cleaned, escaped and cut without ever breaking a sign, an entity or the promise to say it."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.channels import text
from worker.channels.testing.samples import HOSTILE_NAMES

FAMILY = "👩‍👩‍👧‍👦"
FLAG = "🇩🇪"


@pytest.mark.parametrize(
    ("given_text", "limit", "expected"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("word  next", 6, "word…"),
        ("e\u0301e\u0301e\u0301", 4, "e\u0301…"),
        ("ab" + FAMILY, 6, "ab…"),
        (FLAG + FLAG, 6, FLAG + "…"),
        ("a👍🏽b", 4, "a…"),
        ("x", 1, "x"),
        ("xy", 1, "…"),
    ],
)
def test_text_is_cut_at_a_whole_sign(given_text: str, limit: int, expected: str) -> None:
    assert text.cut(given_text, limit) == expected


@pytest.mark.parametrize(
    ("markup", "limit", "expected"),
    [
        ("a &lt;b&gt; c", 5, "a…"),
        ("a &lt;b", 7, "a &lt;b"),
        ("a <https://x.example|Open> b", 12, "a…"),
        ("&amp;&amp;&amp;", 11, "&amp;&amp;…"),
    ],
)
def test_markup_is_never_cut_inside_an_entity_or_a_link(markup: str, limit: int, expected: str) -> None:
    assert text.cut(markup, limit, is_markup=True) == expected


@given(st.text(), st.integers(min_value=1, max_value=60))
def test_cut_text_keeps_within_its_limit(anything: str, limit: int) -> None:
    cleaned = text.one_line(anything)

    assert text.units(text.cut(cleaned, limit)) <= limit


@given(st.text(alphabet="<>&abc é👩\u200d\u0301"), st.integers(min_value=1, max_value=60))
def test_cut_escaped_text_is_still_escaped(anything: str, limit: int) -> None:
    for escape in (text.escape_mrkdwn, text.escape_html):
        cut = text.cut(escape(anything), limit, is_markup=True)

        assert text.units(cut) <= limit
        assert escape(html.unescape(cut)) == cut


@given(st.text())
def test_cleaned_text_is_one_line_that_any_encoding_carries(anything: str) -> None:
    cleaned = text.one_line(anything)

    assert cleaned.encode("utf-8").decode() == cleaned
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", cleaned)


@pytest.mark.parametrize("hostile", HOSTILE_NAMES)
def test_hostile_name_is_bounded_in_every_markup(hostile: str) -> None:
    name = text.name(hostile)

    assert text.units(name) <= text.MAX_NAME_UNITS
    assert not re.search(r"[<>]", text.escape_mrkdwn(name))
    assert not re.search(r"[<>\"']", text.escape_html(name))
    assert "=?" not in text.escape_header(hostile)


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        "javascript:alert(1)",
        "//x.example",
        "https:///path",
        "https://x y",
        "https://[",
        "https://x\n",
        "a" * 9,
        "https://x.example/" + "a" * text.MAX_LINK_CHARS,
    ],
)
def test_what_is_no_web_link_is_no_link(url: str | None) -> None:
    assert text.web_link(url) is None


def test_link_cannot_end_early_in_slack() -> None:
    assert text.slack_link("https://x.example/a|b>c<d?e&f", "Open") == "<https://x.example/a%7Cb%3Ec%3Cd?e&amp;f|Open>"
