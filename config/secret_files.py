"""How a secret comes out of a file: every secret key NAME of a typed table may be given as NAME_file instead."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, SecretStr

from config.errors import SettingsError

SUFFIX = "_file"


def secret_file_keys(model: type[BaseModel]) -> list[str]:
    """Return the NAME_file keys that a table of `model` may have besides its own."""
    return [key + SUFFIX for key in _secret_keys(model)]


def read_secret_files(table: Mapping[str, Any], model: type[BaseModel], *, folder: Path, where: str) -> dict[str, Any]:
    """Return `table` with every NAME_file of a secret replaced by NAME, read from the file.

    A relative path counts from `folder`. White space around a secret is dropped; a list of secrets has one a
    line. Raises SettingsError where both forms are given, or the file cannot be read or is empty.
    """
    result = dict(table)
    for key, is_list in _secret_keys(model).items():
        if key + SUFFIX not in result:
            continue
        place = f"{where} {key}{SUFFIX}"
        if key in result:
            raise SettingsError(f"{place}: {key} is set too; keep one of the two")
        text = _read(result.pop(key + SUFFIX), folder, place)
        result[key] = text.split() if is_list else text
    return result


def _read(path: Any, folder: Path, place: str) -> str:
    if not isinstance(path, str) or not path:
        raise SettingsError(f"{place}: must be a path in quotes")
    file = folder / path
    try:
        text = file.read_text("utf-8").strip()
    except UnicodeDecodeError:
        raise SettingsError(f"{place}: {file} is not UTF-8 text") from None
    except OSError as error:
        raise SettingsError(f"{place}: {file} cannot be read: {error.strerror}") from None
    if not text:
        raise SettingsError(f"{place}: {file} is empty")
    return text


def _secret_keys(model: type[BaseModel]) -> dict[str, bool]:
    """Map each secret key to whether it holds a list of secrets."""
    keys = {}
    for name, field in model.model_fields.items():
        if _holds_secret(field.annotation):
            keys[field.alias or name] = _is_list(field.annotation)
    return keys


def _holds_secret(annotation: Any) -> bool:
    return annotation is SecretStr or any(_holds_secret(part) for part in get_args(annotation))


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) in (list, tuple) or any(_is_list(part) for part in get_args(annotation))
