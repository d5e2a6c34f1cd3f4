"""The page that lists every promise beside its test is what the tests say, and no promise is without one."""

from tests.contract.pause_tokens.statements import STATEMENTS, TRAPS
from tests.contract.pause_tokens.table import PAGE, marked_tests, page_with, table

NUMBERS = STATEMENTS.keys() | TRAPS.keys()


def test_every_statement_and_trap_has_a_test() -> None:
    assert sorted(NUMBERS - marked_tests().keys()) == []
    assert {f"S{number}" for number in range(1, 108)} | {f"T{number}" for number in range(1, 8)} == NUMBERS


def test_no_test_proves_a_statement_that_is_not_there() -> None:
    assert sorted(marked_tests().keys() - NUMBERS) == []


def test_the_page_is_what_the_tests_say() -> None:
    """Run `python -m tests.contract.pause_tokens.table` where this fails."""
    assert PAGE.read_text() == page_with(table())
