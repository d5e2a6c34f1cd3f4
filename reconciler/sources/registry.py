"""Which types of source there are, and how a `[[sources]]` table becomes one."""

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint
from typing import Any, Protocol, cast

from pydantic import BaseModel, ValidationError

from config.errors import SettingsError
from config.option_errors import option_error
from config.plug_ins import PlugIns
from config.secret_files import read_secret_files, secret_file_keys
from reconciler.errors import SourceRefused
from reconciler.sources.protocol import Source
from reconciler.sources.services import SourceServices

SOURCE_TYPES = PlugIns(
    noun="source",
    group="handbell.sources",
    built_in={
        "cayu": "reconciler.sources.cayu",
        "cayu-http": "reconciler.sources.cayu_http",
        "handoff": "reconciler.sources.handoff",
        "pauses": "reconciler.sources.pauses",
    },
)


class SourceType(Protocol):
    """What a source's module exports, built-in or plug-in."""

    TYPE: str
    Options: type[BaseModel]

    def build(self, namespace: str, options: Any, services: SourceServices) -> Source:
        """Make the source of `namespace`; opens nothing yet. Raises SourceRefused or ValueError (one line)."""
        ...


def source_options(
    type_name: str,
    table: Mapping[str, Any],
    services: SourceServices,
    *,
    where: str,
    installed: Iterable[EntryPoint] | None = None,
) -> tuple[SourceType, BaseModel]:
    """Find the type and validate what it understands of a table; raises SettingsError, one line, naming the key."""
    try:
        module = cast("SourceType", SOURCE_TYPES.find(type_name, installed=installed))
    except SettingsError as error:
        raise SettingsError(f"{where} type: {error}") from None
    model = module.Options
    try:
        return module, model.model_validate(read_secret_files(table, model, folder=services.folder, where=where))
    except ValidationError as error:
        raise option_error(error, model=model, where=where, also_known=secret_file_keys(model)) from None


def build_source(
    module: SourceType, namespace: str, options: BaseModel, services: SourceServices, *, where: str
) -> Source:
    """Make the source; raises SettingsError, one line, where its options cannot be used."""
    try:
        return module.build(namespace, options, services)
    except (SourceRefused, ValueError) as error:
        raise SettingsError(f"{where} {error}") from None
