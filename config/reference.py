"""Renders models of settings as a page of Markdown: key, value, bounds, default and meaning of each.

The core's own tables are listed here; `worker/reference/settings_page.py` adds those of the built-in types. A test
holds the page equal to the models, so that neither a setting nor its default can change without it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import time, timedelta
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, SecretStr
from pydantic.fields import FieldInfo

from config.addresses import Address
from config.durations import format_duration
from config.secret_files import SUFFIX, secret_file_keys
from config.settings import Settings
from config.written import Written

_HEAD = """# Settings

One TOML file (`--config FILE`, else the one that `HANDBELL_CONFIG` names, else `./handbell.toml`), overridden by the
environment: `HANDBELL_` and the path of the key, its parts joined by `__` (`HANDBELL_WEB__LISTEN`); lists and tables
come as JSON there. An unknown key or variable is an error. Relative paths count from the file's folder, else from the
working directory. A duration is written with its units: `30s`, `5m`, `1h30m`, `2d`. Every secret `NAME` may come as
`NAME_file`, the path of a file that holds it (of several secrets: one a line); the environment overrides the file in
either form. An empty default means that the key may be left out; its meaning says what is true then.

This page is written by `make docs`.
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
    AwareDatetime: "date and time with a zone, such as 2026-03-14T09:30:00Z",
}
_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
_LENGTHS = {"min_length": "at least", "max_length": "at most"}


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the file: its heading, the model that knows its keys, and what is true where it is left out."""

    heading: str
    model: type[BaseModel]
    note: str = ""


def core_sections() -> Iterator[Section]:
    """Yield the tables of the core, in the order of the tree, each before those inside it."""
    for name, field in Settings.model_fields.items():
        model = _model(field.annotation)
        if model is not None:
            yield from tables_of(_heading(name, field.annotation), model, field.description or "")


def tables_of(heading: str, model: type[BaseModel], note: str = "") -> Iterator[Section]:
    """Yield the table of `model`, then the tables inside it."""
    yield Section(heading, model, note)
    for key, field in _fields(model):
        below = _model(field.annotation)
        if below is not None:
            yield from tables_of(f"{heading} {key}", below)


def reference_page(sections: Sequence[Section]) -> str:
    """Return the whole page as Markdown: the top-level keys, then `sections`."""
    plain = [_row(key, field, ()) for key, field in _fields(Settings) if _model(field.annotation) is None]
    blocks = [_HEAD, _table(plain), *(_block(section) for section in sections)]
    return "\n".join(blocks)


def _heading(name: str, annotation: Any) -> str:
    if _is_mapping(annotation):
        return f"[{name}.NAME]"
    return f"[[{name}]]" if get_origin(annotation) is tuple else f"[{name}]"


def _block(section: Section) -> str:
    meaning = " ".join((section.model.__doc__ or "").split()).removeprefix(f"`{section.heading}`: ")
    files = secret_file_keys(section.model)
    rows = [_row(key, field, files) for key, field in _fields(section.model)]
    text = f"{meaning[:1].upper()}{meaning[1:]} {section.note}".rstrip()
    return f"## `{section.heading}`\n\n{text}\n\n{_table(rows)}"


def _table(rows: Sequence[str]) -> str:
    return "\n".join(["| key | value | default | meaning |", "|---|---|---|---|", *rows, ""])


def _row(key: str, field: FieldInfo, files: Sequence[str]) -> str:
    name = f"`{key}` or `{key}{SUFFIX}`" if key + SUFFIX in files else f"`{key}`"
    cells = (name, _value_text(field), _default_text(field), field.description or "")
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
    lengths = [
        _length_text(words, getattr(part, name), field.annotation)
        for part in field.metadata
        for name, words in _LENGTHS.items()
        if getattr(part, name, None) is not None
    ]
    written = [part.form for part in field.metadata if isinstance(part, Written)]
    return ", ".join([*(written or [_type_text(field.annotation)]), *bounds, *lengths])


def _length_text(words: str, length: int, annotation: Any) -> str:
    if (words, length) == ("at least", 1):
        return "not empty"
    unit = "entries" if get_origin(annotation) in (tuple, list) else "characters"
    return f"{words} {length} {unit}"


def _type_text(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        written = [part.form for part in arguments[1:] if isinstance(part, Written)]
        return written[0] if written else _type_text(arguments[0])
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
    return "table" if _model(annotation) is not None else _PLAIN_TYPES[annotation]


def _default_text(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    if default is None or isinstance(default, BaseModel | Mapping) or default in ((), []):
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
