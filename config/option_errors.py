"""How a wrong key or value of the configuration is said: one line with the key, its place and its nearest neighbour.

Shared by the core settings and by the tables that belong to a type (`[channels.NAME]`, `[[sources]]`), built-in or
plug-in. A value is never repeated: it may be a secret.
"""

import types
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from config.errors import SettingsError
from config.secret_files import secret_file_keys

# Below this likeness (difflib's ratio, 0 to 1) a known key is not offered for an unknown one.
NEIGHBOUR_LIKENESS = 0.6

_FIXED_TEXTS = {
    "missing": "required, but not set",
    "string_type": "must be a text in quotes",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
}


def option_error_lines(
    error: ValidationError, *, model: type[BaseModel], where: str = "", also_known: Sequence[str] = ()
) -> list[str]:
    """Say each problem of `error` in one line: `WHERE KEY: what is wrong`.

    `where` stands in front, for instance `[channels.ops]`; `also_known` are keys that the caller takes out of the
    table before it is validated, so that they can be offered as a neighbour. No line repeats a value. Unknown keys
    come first: a misspelt one is often why another is not set.
    """
    details = sorted(
        error.errors(include_url=False, include_input=False), key=lambda detail: detail["type"] != "extra_forbidden"
    )
    lines = [_line(detail, model, where, also_known) for detail in details]
    return list(dict.fromkeys(lines))


def option_error(
    error: ValidationError, *, model: type[BaseModel], where: str = "", also_known: Sequence[str] = ()
) -> SettingsError:
    """Return `error` as the exception to raise: its first line, and how many more there are."""
    return first_of(option_error_lines(error, model=model, where=where, also_known=also_known))


def first_of(lines: Sequence[str]) -> SettingsError:
    """Return the exception that says the first of `lines`, and how many more there are."""
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    return SettingsError(lines[0] + more)


def unknown_key_text(key: str, known: Sequence[str]) -> str:
    """Say that `key` is unknown, with its nearest neighbour among `known`, or all of them where none is near."""
    near = get_close_matches(key, known, n=1, cutoff=NEIGHBOUR_LIKENESS)
    if near:
        return f'unknown key; did you mean "{near[0]}"?'
    return f"unknown key; known are: {', '.join(sorted(known))}" if known else "unknown key; none is known here"


def known_keys(model: type[BaseModel]) -> list[str]:
    """Return the keys that a table of `model` may have, as they are written in the file."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _line(detail: ErrorDetails, model: type[BaseModel], where: str, also_known: Sequence[str]) -> str:
    path = detail["loc"]
    key = _path_text(path, model)
    place = f"{where} {key}".strip()
    text = _text(detail, path, model, also_known)
    return f"{place}: {text}" if place else text


def _text(detail: ErrorDetails, path: Sequence[str | int], model: type[BaseModel], also_known: Sequence[str]) -> str:
    kind = detail["type"]
    if kind == "extra_forbidden":
        owner = _model_at(model, path[:-1])
        known = [*known_keys(owner), *secret_file_keys(owner)] if owner else []
        return unknown_key_text(str(path[-1]), [*known, *(also_known if len(path) == 1 else ())])
    if kind in _FIXED_TEXTS:
        return _FIXED_TEXTS[kind]
    text = detail["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return text[:1].lower() + text[1:] if text.startswith(("Input ", "String ", "List ", "URL ")) else text


def _path_text(path: Sequence[str | int], model: type[BaseModel]) -> str:
    """Write a location as `routes[0].escalate[1].after`; parts that name a branch of a union are left out."""
    text = ""
    for position, part in enumerate(path):
        if isinstance(part, int):
            text += f"[{part}]"
        elif position == 0 or not _is_union_branch(model, path[:position], part):
            text += f".{part}" if text else part
    return text


def _is_union_branch(model: type[BaseModel], before: Sequence[str | int], part: str) -> bool:
    owner = _model_at(model, before)
    return owner is None and not _holds_mapping(_annotation_at(model, before)) and not part.isidentifier()


def _model_at(model: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel] | None:
    return _first_model(_annotation_at(model, path))


def _annotation_at(model: type[BaseModel], path: Sequence[str | int]) -> Any:
    current: Any = model
    for part in path:
        owner = _first_model(current)
        if owner is None or isinstance(part, int):
            continue
        current = next(
            (field.annotation for name, field in owner.model_fields.items() if part in (name, field.alias)), current
        )
    return current


def _holds_mapping(annotation: Any) -> bool:
    return any(
        isinstance(get_origin(part) or part, type) and issubclass(get_origin(part) or part, Mapping)
        for part in _parts(annotation)
    )


def _first_model(annotation: Any) -> type[BaseModel] | None:
    return next((part for part in _parts(annotation) if isinstance(part, type) and issubclass(part, BaseModel)), None)


def _parts(annotation: Any) -> Iterator[Any]:
    """Walk an annotation through unions, lists, tuples, mappings and Annotated down to plain types."""
    yield annotation
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _parts(get_args(annotation)[0])
    elif origin in (Union, types.UnionType) or origin is not None:
        for argument in get_args(annotation):
            if argument is not Ellipsis:
                yield from _parts(argument)
