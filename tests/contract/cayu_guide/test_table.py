"""Every sentence of the installed guide has its test, every named test runs, and the page says so."""

from collections.abc import Mapping, Sequence

from tests.contract.cayu_guide.collecting import Found, collect, leaves_itself_out
from tests.contract.cayu_guide.guide import guide_text, sentences
from tests.contract.cayu_guide.table import BOTH, PAGE, REASONS, missing, page, read_statements


def test_every_sentence_of_the_installed_guide_has_an_entry() -> None:
    assert [(item.key, item.beginning) for item in missing()] == []


def test_no_entry_is_about_a_sentence_that_the_guide_does_not_have() -> None:
    statements = read_statements()
    keys = {item.key for item in sentences(guide_text())}

    assert sorted(({*statements.tests, *statements.reasons, *statements.remarks} | statements.of_stores) - keys) == []


def test_every_reason_is_one_of_the_known_and_every_entry_names_something() -> None:
    statements = read_statements()

    assert set(statements.reasons.values()) <= set(REASONS)
    assert all(statements.tests.values())


def test_named_tests_run_on_both_databases_where_it_matters_and_the_page_says_so() -> None:
    """Run `make docs` where only the page differs. One test, because pytest collects for seconds."""
    statements = read_statements()
    found = collect(statements.files)
    names = {name for names in statements.tests.values() for name in names}
    of_stores = {key: statements.tests.get(key, ()) for key in statements.of_stores}

    assert sorted(names - set(found)) == []
    assert {name: found[name].left_out_by for name in names if found[name].left_out_by} == {}
    assert sorted(file for file in statements.files if leaves_itself_out(file)) == []
    assert {key: tests for key, tests in of_stores.items() if not _is_on_both(found, tests)} == {}
    assert PAGE.read_text(encoding="utf-8") == page(found)


def _is_on_both(found: Mapping[str, Found], names: Sequence[str]) -> bool:
    return all(any(found[name].runs_on(database) for name in names) for database in BOTH)


def test_sentences_are_told_apart_and_none_is_lost() -> None:
    text = "# T\n\nOne here. Two\nthere.\n\n- an item\n  goes on\n\n```sh\na. B\n```\n"
    text += "\n| a | b |\n|---|---|\n| `c` | d |\n"

    assert [(item.section, " ".join(item.text.split())) for item in sentences(text)] == [
        ("T", "One here."),
        ("T", "Two there."),
        ("T", "an item goes on"),
        ("T", "```sh a. B ```"),
        ("T", "a | b"),
        ("T", "`c` | d"),
    ]
