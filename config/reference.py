"""Writes the reference of the settings from the settings themselves: `python -m config.reference > docs/settings.md`.

A test holds the page equal to the tree, so that neither a setting nor its default can change without it.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import time, timedelta
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from config.addresses import Address
from config.durations import format_duration
from config.secret_files import secret_file_keys
from config.settings import Settings

_HEAD = """# Settings

One TOML file (`--config FILE`, else the one that `HANDBELL_CONFIG` names, else `./handbell.toml`), overridden by the
environment: `HANDBELL_` and the path of the key, its parts joined by `__` (`HANDBELL_WEB__LISTEN`); lists and tables
come as JSON there. An unknown key or variable is an error. Relative paths count from the file's folder, else from the
working directory. A duration is written with its units: `30s`, `5m`, `1h30m`, `2d`. Every secret `NAME` may come as
`NAME_file`, the path of a file that holds it; the environment overrides the file in either form.

This page is written by `python -m config.reference`.
"""

_PLAIN_TYPES: Mapping[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "whole number",
    float: "number",
    Path: "path",
    SecretStr: "secret text",
    timedelta: "duration",
    time: '"HH:MM"',
    Address: "HOST:PORT",
}
_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the file: how its heading stands in TOML, and the model that knows its keys."""

    heading: str
    model: type[BaseModel]


def core_sections() -> Iterator[Section]:
    """Yield the tables of the core, in the order of the tree, each before those inside it."""
    for name, field in Settings.model_fields.items():
        model = _model(field.annotation)
        if model is not None:
            yield from _sections(_heading(name, field.annotation), model)


def reference_page(sections: Sequence[Section]) -> str:
    """Return the whole page as Markdown: the top-level keys, then `sections`."""
    plain = [
        line for key, field in _fields(Settings) if _model(field.annotation) is None for line in (_row(key, field),)
    ]
    blocks = [_HEAD, _table(plain), *(_block(section) for section in sections)]
    return "\n".join(blocks)


def _sections(heading: str, model: type[BaseModel]) -> Iterator[Section]:
    yield Section(heading, model)
    for key, field in _fields(model):
        below = _model(field.annotation)
        if below is not None:
            yield from _sections(f"{heading} {key}", below)


def _heading(name: str, annotation: Any) -> str:
    if _is_mapping(annotation):
        return f"[{name}.NAME]"
    return f"[[{name}]]" if get_origin(annotation) is tuple else f"[{name}]"


def _block(section: Section) -> str:
    meaning = " ".join((section.model.__doc__ or "").split()).removeprefix(f"`{section.heading}`: ")
    rows = [_row(key, field) for key, field in _fields(section.model)]
    secrets = ", ".join(f"`{key}`" for key in secret_file_keys(section.model))
    note = f"\nInstead of the secret itself: {secrets}.\n" if secrets else ""
    return f"## `{section.heading}`\n\n{meaning[:1].upper()}{meaning[1:]}\n\n{_table(rows)}{note}"


def _table(rows: Sequence[str]) -> str:
    return "\n".join(["| key | value | default | meaning |", "|---|---|---|---|", *rows, ""])


def _row(key: str, field: FieldInfo) -> str:
    cells = (f"`{key}`", _value_text(field), _default_text(field), field.description or "")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        yield field.alias or name, field


def _value_text(field: FieldInfo) -> str:
    bounds = [
        f"{words} {_literal(getattr(part, name))}"
        for part in field.metadata
        for name, words in _BOUNDS.items()
        if getattr(part, name, None) is not None
    ]
    return ", ".join([_type_text(field.annotation), *bounds])


def _type_text(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_text(arguments[0])
    if origin in (Union, UnionType):
        return " or ".join(_type_text(part) for part in arguments if part is not type(None))
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if _is_mapping(annotation):
        return f"table of {_type_text(arguments[1])}"
    if origin in (tuple, list):
        return f"list of {_type_text(arguments[0])}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{choice.value}`" for choice in annotation)
    return _PLAIN_TYPES.get(annotation, "table")


def _default_text(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    if default is None or isinstance(default, BaseModel | Mapping) or default == ():
        return ""
    return _literal(default)


def _literal(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"`{format_duration(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`"


def _model(annotation: Any) -> type[BaseModel] | None:
    """Return the model of a table, a list of tables or named tables."""
    parts = [annotation, *get_args(annotation)]
    return next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), None)


def _is_mapping(annotation: Any) -> bool:
    origin = get_origin(annotation)
    return isinstance(origin, type) and issubclass(origin, Mapping)


if __name__ == "__main__":
    sys.stdout.write(reference_page(list(core_sections())))
