"""Which types of channel there are, and how the `[channels]` of the configuration become destinations."""

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from config.errors import SettingsError
from config.option_errors import known_keys, option_error
from config.plug_ins import PlugIns
from config.secret_files import read_secret_files, secret_file_keys
from worker.channels.destination import Destination
from worker.channels.option_fields import Rate
from worker.channels.protocol import Channel
from worker.channels.services import ChannelType, Services, Tables

CHANNEL_TYPES = PlugIns(
    noun="channel",
    group="handbell.channels",
    built_in={
        "console": "worker.channels.console",
        "email": "worker.channels.smtp",
        "slack": "worker.channels.slack",
        "slack-webhook": "worker.channels.slack_webhook",
        "webhook": "worker.channels.webhook",
    },
)

# What there is where the configuration names no destination.
DEFAULT_TABLES: Tables = {"console": {"type": "console"}}

# Names become metric labels and arguments of the command line.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", re.ASCII)


class CommonOptions(BaseModel):
    """`[channels.NAME]`: one destination. These keys every type has."""

    model_config = ConfigDict(extra="ignore")

    type: str = Field(description="A built-in type (their keys stand below), or a plug-in's name.")
    fallback: list[str] = Field(
        default=[],
        description="Destinations that are told instead where this one refuses a message, is broken or is paused, best "
        "first. Left out: what waits for it waits on.",
    )
    rate: Rate | None = Field(
        default=None,
        description="The most messages in a second, minute or hour; they are spread evenly. Left out: the type's own "
        'limit ("1/s" for the Slack types), else "unlimited".',
    )


def build_destinations(
    tables: Tables, services: Services, *, installed: Iterable[EntryPoint] | None = None
) -> tuple[Destination, ...]:
    """Make every destination of `[channels]`, in the order of the file; with no table, the default console.

    `installed` stands for the environment's plug-ins. Nothing is connected yet. Raises SettingsError, one line that
    names the table and the key.
    """
    tables = tables or DEFAULT_TABLES
    found = None if installed is None else list(installed)
    destinations = tuple(_build(name, table, services, found) for name, table in tables.items())
    for destination in destinations:
        _check_fallback(destination, tables)
    return destinations


def _build(name: str, table: Any, services: Services, installed: list[EntryPoint] | None) -> Destination:
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
        module = cast("ChannelType", CHANNEL_TYPES.find(common.type, installed=installed))
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
