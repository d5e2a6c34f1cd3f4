"""Which types of channel there are, and how the `[channels]` of the configuration become destinations."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from config.errors import SettingsError
from config.option_errors import known_keys, option_error
from config.secret_files import read_secret_files, secret_file_keys
from worker.channels.option_fields import Rate
from worker.channels.protocol import Channel
from worker.channels.services import ChannelType, Services, Tables

ENTRY_POINT_GROUP = "handbell.channels"

BUILT_IN = {
    "console": "worker.channels.console",
    "email": "worker.channels.smtp",
    "slack": "worker.channels.slack",
    "slack-webhook": "worker.channels.slack_webhook",
    "webhook": "worker.channels.webhook",
}

# What there is where the configuration names no destination.
DEFAULT_TABLES: Tables = {"console": {"type": "console"}}

# Names become metric labels and arguments of the command line.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", re.ASCII)


class CommonOptions(BaseModel):
    """The keys that every `[channels.NAME]` may have, whatever its type."""

    model_config = ConfigDict(extra="ignore")

    type: str = Field(description="Which kind of channel this is: a built-in type or a plug-in's. Required.")
    fallback: list[str] = Field(
        default=[],
        description="Names of the destinations to use while this one is marked broken, best first. Default: none.",
    )
    rate: Rate | None = Field(
        default=None,
        description='The most messages in a time: "1/s", "20/m", "100/h" or "unlimited". '
        'Default: the type\'s own limit ("1/s" for the Slack types), else unlimited.',
    )


@dataclass(frozen=True, slots=True)
class Destination:
    """One configured destination: its channel, who stands in for it, the least time between two messages."""

    name: str
    type: str
    channel: Channel
    fallback: tuple[str, ...]
    throttle: timedelta | None


def channel_type(name: str, *, plug_ins: Iterable[EntryPoint] | None = None) -> ChannelType:
    """Find a type by its name; raises SettingsError that lists what there is."""
    found = list(entry_points(group=ENTRY_POINT_GROUP) if plug_ins is None else plug_ins)
    for entry_point in found:
        if entry_point.name in BUILT_IN:
            raise SettingsError(
                f"plug-in {entry_point.value} claims the built-in channel type {entry_point.name!r}: "
                "uninstall it, or have it renamed"
            )
    if name in BUILT_IN:
        return cast("ChannelType", import_module(BUILT_IN[name]))
    matching = [entry_point for entry_point in found if entry_point.name == name]
    if not matching:
        raise SettingsError(_unknown_type(name, [*BUILT_IN, *(entry_point.name for entry_point in found)]))
    if len({entry_point.value for entry_point in matching}) > 1:
        raise SettingsError(f"channel type {name!r} is claimed by several plug-ins: uninstall all but one")
    return _load(matching[0])


def build_destinations(
    tables: Tables, services: Services, *, plug_ins: Iterable[EntryPoint] | None = None
) -> tuple[Destination, ...]:
    """Make every destination of `[channels]`, in the order of the file; with no table, the default console.

    Nothing is connected yet. Raises SettingsError, one line that names the table and the key.
    """
    tables = tables or DEFAULT_TABLES
    found = None if plug_ins is None else list(plug_ins)
    destinations = tuple(_build(name, table, services, found) for name, table in tables.items())
    for destination in destinations:
        _check_fallback(destination, tables)
    return destinations


def _build(name: str, table: Any, services: Services, plug_ins: list[EntryPoint] | None) -> Destination:
    where = f"[channels.{name}]"
    if _NAME.fullmatch(name) is None:
        raise SettingsError(f"{where}: a destination's name has letters, digits, - and _ only, at most 63")
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where}: must be a table")
    try:
        common = CommonOptions.model_validate(dict(table))
    except ValidationError as error:
        raise option_error(error, model=CommonOptions, where=where) from None
    try:
        module = channel_type(common.type, plug_ins=plug_ins)
    except SettingsError as error:
        raise SettingsError(f"{where} type: {error}") from None
    options = _options(table, module.Options, services, where)
    return Destination(
        name=name,
        type=common.type,
        channel=_channel(module, name, options, services, where),
        fallback=tuple(common.fallback),
        throttle=(getattr(module, "THROTTLE", None) if common.rate is None else common.rate) or None,
    )


def _options(table: Mapping[str, Any], model: type[BaseModel], services: Services, where: str) -> BaseModel:
    common_keys = known_keys(CommonOptions)
    own = {key: value for key, value in table.items() if key not in common_keys}
    own = read_secret_files(own, model, folder=services.folder, where=where)
    try:
        return model.model_validate(own)
    except ValidationError as error:
        also_known = [*common_keys, *secret_file_keys(model)]
        raise option_error(error, model=model, where=where, also_known=also_known) from None


def _channel(module: ChannelType, name: str, options: BaseModel, services: Services, where: str) -> Channel:
    try:
        return module.build(name, options, services)
    except (SettingsError, ValueError) as error:
        raise SettingsError(f"{where} {error}") from None


def _check_fallback(destination: Destination, tables: Tables) -> None:
    where = f"[channels.{destination.name}] fallback"
    for name in destination.fallback:
        if name == destination.name:
            raise SettingsError(f"{where}: a destination cannot stand in for itself")
        if name not in tables:
            raise SettingsError(f"{where}: there is no [channels.{name}]; there are: {', '.join(sorted(tables))}")


def _load(entry_point: EntryPoint) -> ChannelType:
    try:
        module = entry_point.load()
    except Exception as error:  # a stranger's module may raise anything while it is imported
        raise SettingsError(f"plug-in {entry_point.value} cannot be loaded: {type(error).__name__}") from error
    missing = [attribute for attribute in ("TYPE", "Options", "build") if not hasattr(module, attribute)]
    if missing:
        raise SettingsError(f"plug-in {entry_point.value} is no channel type: it has no {', '.join(missing)}")
    if entry_point.name != module.TYPE:
        raise SettingsError(f"plug-in {entry_point.value} calls itself {module.TYPE!r}, not {entry_point.name!r}")
    if module.Options.model_config.get("extra") != "forbid":
        raise SettingsError(f"plug-in {entry_point.value}: its Options must forbid unknown keys")
    return cast("ChannelType", module)


def _unknown_type(name: str, there_are: list[str]) -> str:
    near = get_close_matches(name, there_are, n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    return f"no channel type is called {name!r}; {hint}there are: {', '.join(sorted(there_are))}"
