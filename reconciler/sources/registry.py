"""Which types of source there are, and how a `[[sources]]` table becomes one."""

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any, Protocol, cast

from pydantic import BaseModel, ValidationError

from config.errors import SettingsError
from config.option_errors import option_error
from config.plug_ins import PlugIns
from config.secret_files import read_secret_files, secret_file_keys
from reconciler.errors import SourceRefused
from reconciler.sources.apart import ApartSource
from reconciler.sources.apart_child import Recipe, Whole
from reconciler.sources.protocol import Source
from reconciler.sources.services import SourceServices

# So many rows hold up the process that delivers for a third of a second at most, and most deployments have no more.
READ_HERE_AT_MOST = 25

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
    """What a source's module exports, built-in or plug-in.

    A module may also say `PAGES_APART = True`: its source has every ability, its options can be pickled, it needs no
    `http`, and its pages are computed in this process.
    """

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
    """Make the source, with its pages read apart where the services ask for it and its pages are computed here.

    Raises SettingsError, one line, where its options cannot be used.
    """
    try:
        source = module.build(namespace, options, services)
    except (SourceRefused, ValueError) as error:
        raise SettingsError(f"{where} {error}") from None
    if services.reads_pages_apart and getattr(module, "PAGES_APART", False):
        recipe = Recipe(cast("ModuleType", module).__name__, namespace, options, services.folder)
        return ApartSource(cast("Whole", source), recipe, services.clock, here_at_most=READ_HERE_AT_MOST)
    return source
