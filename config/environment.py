"""The settings that come from the environment: `HANDBELL_` and the path of a key, its parts joined by `__`.

Every variable of that prefix must be one that is known, so that a misspelt one is not silently without effect.
Lists and tables come as JSON; what is neither is taken as it stands.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from config.errors import SettingsError
from config.secret_files import SUFFIX, secret_file_keys

PREFIX = "HANDBELL_"
CONFIG_VARIABLE = "HANDBELL_CONFIG"
_DELIMITER = "__"


@dataclass(frozen=True, slots=True)
class EnvironmentSettings:
    """What the environment sets, as nested tables, and by which variable each path (`web.listen`) came."""

    values: dict[str, Any]
    variables: Mapping[str, str]


def read_environment(environ: Mapping[str, str], model: type[BaseModel]) -> EnvironmentSettings:
    """Collect the variables that `model` knows; raises SettingsError for one that it does not know."""
    values: dict[str, Any] = {}
    variables: dict[str, str] = {}
    names = [name for name in environ if name.startswith(PREFIX) and name != CONFIG_VARIABLE]
    for name in sorted(names, key=lambda name: (name.count(_DELIMITER), name)):
        path = name.removeprefix(PREFIX).lower().split(_DELIMITER)
        value = _value(environ[name], name, _annotation(path, name, model))
        _put(values, path, value)
        variables[".".join(path)] = name
    return EnvironmentSettings(values, variables)


def drop_overridden(table: dict[str, Any], by: Mapping[str, Any]) -> None:
    """Take out of `table` (and the tables in it) each NAME or NAME_file whose other form `by` has.

    So a variable overrides the file's secret, whichever of the two forms either uses.
    """
    for key, value in by.items():
        table.pop(key.removesuffix(SUFFIX) if key.endswith(SUFFIX) else f"{key}{SUFFIX}", None)
        below = table.get(key)
        if isinstance(value, Mapping) and isinstance(below, dict):
            drop_overridden(below, value)


def known_variables(model: type[BaseModel], prefix: str = PREFIX) -> Iterator[str]:
    """Yield the name of every variable that `model` knows, those of open tables apart."""
    for key, annotation in _annotations(model).items():
        name = f"{prefix}{key.upper()}"
        yield name
        below = _model(annotation)
        if below is not None:
            yield from known_variables(below, f"{name}{_DELIMITER}")


def _annotation(path: Sequence[str], name: str, model: type[BaseModel]) -> Any:
    """Return the type of the setting at `path`; Any where the owner of an open table decides."""
    current: Any = model
    for depth, part in enumerate(path):
        owner = _model(current)
        if owner is not None:
            known = _annotations(owner)
            if part not in known and owner.model_config.get("extra") == "allow":
                return Any
            current = known.get(part)
        elif _is_mapping(current):
            current = get_args(current)[1]
        elif _is_list(current):
            raise SettingsError(f"{name}: a list comes as JSON, in {PREFIX}{_DELIMITER.join(path[:depth]).upper()}")
        else:
            current = None
        if current is None or not part:
            raise SettingsError(f"{name}: unknown variable; {_instead(name, model)}")
    return current


def _value(text: str, name: str, annotation: Any) -> Any:
    is_json = text.lstrip()[:1] in ("[", "{") if annotation is Any else _is_structure(annotation)
    if not is_json:
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise SettingsError(
            f'{name}: must be JSON, for instance ["a", "b"] ({error.msg}, character {error.pos + 1})'
        ) from None


def _put(values: dict[str, Any], path: Sequence[str], value: Any) -> None:
    table = values
    for part in path[:-1]:
        below = table.setdefault(part, {})
        if not isinstance(below, dict):
            below = table[part] = {}
        table = below
    table[path[-1]] = value


def _instead(name: str, model: type[BaseModel]) -> str:
    known = [variable.removeprefix(PREFIX) for variable in known_variables(model)]
    near = get_close_matches(name.removeprefix(PREFIX), known, n=1)
    return f"did you mean {PREFIX}{near[0]}?" if near else "unset it, or look the right one up in docs/settings.md"


def _annotations(model: type[BaseModel]) -> dict[str, Any]:
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    return fields | dict.fromkeys(secret_file_keys(model), str)


def _alternatives(annotation: Any) -> Sequence[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _alternatives(get_args(annotation)[0])
    return get_args(annotation) if origin in (Union, UnionType) else (annotation,)


def _model(annotation: Any) -> type[BaseModel] | None:
    parts = _alternatives(annotation)
    return next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), None)


def _is_mapping(annotation: Any) -> bool:
    return isinstance(get_origin(annotation), type) and issubclass(get_origin(annotation), Mapping)


def _is_list(annotation: Any) -> bool:
    return any(get_origin(part) in (list, tuple) for part in _alternatives(annotation))


def _is_structure(annotation: Any) -> bool:
    return _model(annotation) is not None or _is_mapping(annotation) or _is_list(annotation)
