"""Reads what the words of a closed set mean: each says it in the comment behind it, or in its module's `MEANINGS`."""

import inspect
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

Word = TypeVar("Word", bound=StrEnum)

_MEMBER = re.compile(r'\s+(?P<name>[A-Z][A-Z0-9_]*) = "[^"]*"(?:  # (?P<meaning>.+))?')


def meanings(words: type[Word]) -> Mapping[Word, str]:
    """Return the meaning of every word, in their order; empty where nothing says it (a test finds that).

    A program that shows a meaning keeps it in a table `MEANINGS` beside the words; then that is the one.
    """
    lines = map(_MEMBER.fullmatch, inspect.getsource(words).splitlines())
    behind = {line["name"]: line["meaning"] or "" for line in lines if line}
    table = getattr(inspect.getmodule(words), "MEANINGS", {})
    return {word: table.get(word) or behind.get(word.name, "") for word in words}
