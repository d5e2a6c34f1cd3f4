"""The mutants can still be applied and name tests that exist; that each is killed is shown by `make mutants`."""

import ast
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT, Mutant, has_test


def test_there_are_enough_and_each_has_its_own_name() -> None:
    assert len(MUTANTS) >= 12
    assert [name for name, count in Counter(item.name for item in MUTANTS).items() if count > 1] == []


@pytest.mark.parametrize("item", MUTANTS, ids=lambda item: item.name.replace(" ", "-"))
def test_mutant_applies_compiles_and_names_a_test_that_exists(item: Mutant, tmp_path: Path) -> None:
    for file in {edit.file for edit in item.edits}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)

    for edit in item.edits:
        edit.apply(tmp_path)

    for edit in item.edits:
        ast.parse((tmp_path / edit.file).read_text())
    assert has_test(item)
