"""What namespaces, types and destinations may be called, and whether every destination that is named exists."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Annotated

from pydantic import AfterValidator, Field

# Part of URLs, keys and labels, and told apart by case.
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_TYPE = re.compile(r"[a-z][a-z0-9_-]{0,39}")
# Lower case and without `__`, so that a variable of the environment can name one.
_DESTINATION = re.compile(r"[a-z0-9](?:_?[a-z0-9-]){0,31}")


def _namespace(name: str) -> str:
    if not _NAMESPACE.fullmatch(name):
        raise ValueError("a namespace is made of letters, digits, `.`, `_` and `-`, and begins with a letter or digit")
    return name


def _type(name: str) -> str:
    if not _TYPE.fullmatch(name):
        raise ValueError("a type is made of lower case letters, digits, `-` and `_`")
    return name


Namespace = Annotated[str, AfterValidator(_namespace)]
TypeName = Annotated[str, AfterValidator(_type)]
DestinationName = Annotated[str, Field(min_length=1, max_length=64)]


def bad_name(destinations: Iterable[str]) -> str | None:
    """Return what is wrong with the first destination whose name cannot be used, or None."""
    for name in destinations:
        if not _DESTINATION.fullmatch(name):
            return f"channels.{name}: a destination's name is made of lower case letters, digits, `-` and single `_`"
    return None


def unknown_destination(known: Iterable[str], named: Iterable[tuple[str, Sequence[str]]]) -> str | None:
    """Return the first problem among `named` (place, names) as one line, or None where all are well."""
    destinations = list(known)
    for place, names in named:
        for name in names:
            if name not in destinations:
                return f"{place}: there is no [channels.{name}]; {_instead(name, destinations)}"
            if place == f"channels.{name}.fallback":
                return f"{place}: a destination cannot be its own fallback"
    return None


def _instead(name: str, destinations: Sequence[str]) -> str:
    near = get_close_matches(name, destinations, n=1)
    return f'did you mean "{near[0]}"?' if near else f"there are: {', '.join(sorted(destinations)) or 'none'}"
