"""A wrong implementation: a small edit of the source, and the test that must notice it."""

import ast
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Edit:
    """In `file`, the text `old` (found exactly once) becomes `new`."""

    file: str
    old: str
    new: str

    def apply(self, tree: Path) -> None:
        """Edit the file of `tree`; raises ValueError where the old text is not found exactly once."""
        path = tree / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file}: found {text.count(self.old)} times: {self.old}")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is wrong, in words (`name`), where, and the id of the test that kills it (one variant, the cheapest)."""

    name: str
    killed_by: str
    edits: tuple[Edit, ...]

    @property
    def test_file(self) -> str:
        """Return the file of the test."""
        return self.killed_by.partition("::")[0]

    @property
    def test_name(self) -> str:
        """Return the name of the test's function."""
        return self.killed_by.partition("::")[2].partition("[")[0]


def mutant(name: str, killed_by: str, file: str, old: str, new: str, *more: Edit) -> Mutant:
    """Make a mutant of one edit, and of `more` where one is not enough."""
    return Mutant(name, killed_by, (Edit(file, old, new), *more))


def has_test(item: Mutant, root: Path = ROOT) -> bool:
    """Answer whether the test's function exists in its file."""
    tree = ast.parse((root / item.test_file).read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return item.test_name in {function.name for function in functions}
