"""Reads the configuration: the file, overridden by the environment, checked as a whole.

Whatever is wrong is one SettingsError of one line: the file and key or the variable, what is wrong, what to do. A
value is never repeated: it may be a secret.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from sqlalchemy import URL

from config.database import database_url
from config.environment import CONFIG_VARIABLE, EnvironmentSettings, drop_overridden, read_environment
from config.errors import SettingsError
from config.option_errors import first_of, option_error_lines
from config.secret_files import read_secret_files, secret_file_keys
from config.settings import Settings

DEFAULT_FILE = "handbell.toml"
EMBEDDED_DATABASE = "handbell.db"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings, and the folder that their relative paths count from: the file's, else the working directory."""

    settings: Settings
    folder: Path
    file: Path | None

    @property
    def state_dir(self) -> Path:
        """Return the absolute path of `state_dir`; nothing is made here."""
        return self.folder / self.settings.state_dir.expanduser()

    @property
    def database_url(self) -> URL:
        """Return the database's URL with our driver: the configured one, else the file in `state_dir`."""
        url = self.settings.database.url
        if url is None:
            return database_url(f"sqlite:///{EMBEDDED_DATABASE}", relative_to=self.state_dir)
        return database_url(url.get_secret_value(), relative_to=self.folder)


def load_configuration(
    named: Path | None = None, *, environ: Mapping[str, str] = os.environ, cwd: Path | None = None
) -> Configuration:
    """Read the file `named` (of `--config`), else that of HANDBELL_CONFIG, else ./handbell.toml if there is one.

    Raises SettingsError (one line) where the file or the environment cannot be used as it is.
    """
    here = cwd or Path.cwd()
    path = _file(named, environ, here)
    folder = path.parent if path else here
    table = _read(path) if path else {}
    environment = read_environment(environ, Settings)
    drop_overridden(table, environment.values)
    places = _Places(path, environment)
    values = _with_core_secrets(_merged(table, environment.values), folder, places)
    configuration = Configuration(_settings(values, places), folder, path)
    try:
        _ = configuration.database_url  # read for its check
    except SettingsError as error:
        raise SettingsError(f"{places.of('database.url')}{error}") from None
    return configuration


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a setting came from: its variable, or the file."""

    file: Path | None
    environment: EnvironmentSettings

    def of(self, path: str) -> str:
        """Return what stands in front of a problem at `path`."""
        for known, variable in self.environment.variables.items():
            if path == known or path.startswith((f"{known}.", f"{known}[")):
                return f"{variable}: "
        return f"{self.file}: " if self.file else ""


def _file(named: Path | None, environ: Mapping[str, str], here: Path) -> Path | None:
    by = "--config" if named else CONFIG_VARIABLE
    chosen = named or (Path(environ[CONFIG_VARIABLE]) if environ.get(CONFIG_VARIABLE) else None)
    path = here / (chosen.expanduser() if chosen else DEFAULT_FILE)
    if chosen and not path.exists():
        raise SettingsError(f"{path} does not exist: {by} names it")
    return path if path.exists() else None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None


def _merged(table: Mapping[str, Any], by: Mapping[str, Any]) -> dict[str, Any]:
    """Return `table` with the values of `by` over it; tables are merged, lists are replaced."""
    result = dict(table)
    for key, value in by.items():
        below = result.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            result[key] = _merged(below, value)
        else:
            result[key] = value
    return result


def _with_core_secrets(values: Mapping[str, Any], folder: Path, places: _Places) -> dict[str, Any]:
    """Read the secret files of the core's own tables; those of channels and sources are their types' matter."""
    result = dict(values)
    for name, field in Settings.model_fields.items():
        model, table = field.annotation, result.get(name)
        if isinstance(model, type) and issubclass(model, BaseModel) and isinstance(table, Mapping):
            where = places.of(next((f"{name}.{key}" for key in secret_file_keys(model) if key in table), name))
            result[name] = read_secret_files(table, model, folder=folder, where=f"{where}[{name}]")
    return result


def _settings(values: Mapping[str, Any], places: _Places) -> Settings:
    try:
        return Settings(**values)
    except ValidationError as error:
        lines = option_error_lines(error, model=Settings)
        raise first_of([f"{places.of(line.split(': ')[0])}{line}" for line in lines]) from None
