"""The tree of everything that can be set. `config.loading` fills it; the wiring hands out plain values made from it.

`[channels.*]` and `[[sources]]` are kept as tables with a `type`: what that type understands of the rest, it
validates itself when the wiring builds it.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from config.addresses import Address, ListenAddress
from config.durations import Duration
from config.names import DestinationName, Namespace, TypeName, bad_name, unknown_destination
from config.policy_settings import DeliverySettings, RetentionSettings, UnavailableSettings
from config.route_settings import RouteSettings
from config.setting_tables import SettingsTable, TypedTable
from config.setting_urls import PublicUrl, RedisUrl, SessionLink


class DatabaseSettings(SettingsTable):
    """`[database]`: where the truth is kept."""

    url: SecretStr | None = Field(
        None,
        description="`sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`. Left out: `handbell.db` in "
        "`state_dir`.",
    )
    pool_size: int = Field(
        5, ge=1, le=200, description="PostgreSQL connections that each process keeps open; it may use twice as many."
    )


class RedisSettings(SettingsTable):
    """`[redis]`: the wire from the agents, and the doorbell."""

    url: RedisUrl | None = Field(
        None,
        description="`redis://`, `rediss://` (TLS) or `unix://` URL. Left out: a real Valkey server is embedded, on a "
        "Unix socket in `state_dir`.",
    )


class WebSettings(SettingsTable):
    """`[web]`: the public port, and the one for health and metrics."""

    listen: ListenAddress = Field(Address("127.0.0.1", 8321), description="HOST:PORT of the public port.")
    public_url: PublicUrl | None = Field(
        None,
        description="The URL under which agents reach `listen`; `handbell run` prints it. Left out: that of `listen`.",
    )
    admin_listen: ListenAddress = Field(
        Address("127.0.0.1", 8322),
        description="HOST:PORT of health and metrics, never on the public port; each role has its own "
        "(`--admin-listen`).",
    )

    @model_validator(mode="after")
    def _two_ports(self) -> Self:
        if self.listen == self.admin_listen and self.listen.port:
            raise ValueError("listen and admin_listen are the same address: health and metrics need one of their own")
        return self


class SourceSettings(TypedTable):
    """`[[sources]]`: one runtime database, and how it is asked. These keys every type has."""

    namespace: Namespace = Field(
        description="The deployment's name of it, part of every key: letters, digits, `.`, `_`, `-`. One source each."
    )
    type: TypeName = Field(description="A built-in type (their keys stand below), or a plug-in's name.")
    sweep_every: Duration = Field(
        timedelta(minutes=5),
        ge=timedelta(seconds=1),
        le=timedelta(days=1),
        description="How often everything is read again; a lost hint waits this long at most.",
    )
    head_every: Duration = Field(
        timedelta(seconds=15),
        ge=timedelta(seconds=1),
        le=timedelta(days=1),
        description="How often the newest requests are read; shorter finds a lost hint sooner and costs reads.",
    )


class ChannelSettings(TypedTable):
    """`[channels.NAME]`: one destination. Keys besides these belong to its type."""

    type: TypeName = Field(description="A built-in type (their keys stand below), or a plug-in's name.")
    fallback: tuple[DestinationName, ...] = Field(
        (), description="Destinations that are told instead where this one is broken."
    )


class OperatorSettings(SettingsTable):
    """`[operator]`: Handbell's own notices, for instance about a broken destination."""

    notify: tuple[DestinationName, ...] = Field(
        (),
        description="Destinations that get them, never the one that a notice is about. Left out: only "
        "`handbell status` shows them.",
    )


class AnswerSettings(SettingsTable):
    """`[answers]`: the keys that sign answer tokens and seal what paused runs hand over."""

    keyset: Path | None = Field(
        None,
        description="File of the keys (docs/pause-tokens.md has its form), the same for every process. Left out: with"
        " an embedded database one is made in `state_dir`; with a configured one there is no default.",
    )


class LogSettings(SettingsTable):
    """`[log]`: what goes to stderr."""

    format: Literal["console", "json"] = Field("console", description="`console` for people, `json` one object a line.")
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="The least level that is logged.")


class LinkSettings(SettingsTable):
    """`[links]`: where a message takes its reader."""

    session: SessionLink | None = Field(
        None,
        description="An http(s) URL with `{session}` (the runtime's public session id) and, where wanted, "
        "`{namespace}`. Left out: no link.",
    )
    raw_session_id: bool = Field(
        False, description="Whether the raw session id may stand in a link where the runtime has no public one."
    )


class Settings(BaseSettings):
    """Everything that can be set. Built from keyword arguments alone; `config.loading` reads file and environment."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True)

    state_dir: Path = Field(
        Path(".handbell"),
        description="Folder of the embedded servers and first-run secrets, made with mode 0700. One process at a time, "
        "but where both `[redis] url` and `[database] url` are set.",
    )
    database: DatabaseSettings = Field(default_factory=DatabaseSettings)
    redis: RedisSettings = Field(default_factory=RedisSettings)
    web: WebSettings = Field(default_factory=WebSettings)
    sources: tuple[SourceSettings, ...] = Field((), description="Left out: nothing is asked, hints are kept.")
    channels: Mapping[str, ChannelSettings] = Field(
        default_factory=lambda: {"console": ChannelSettings(type="console")},
        description='Names are lower case letters, digits, `-` and `_`. Left out: one `console` of type "console".',
    )
    operator: OperatorSettings = Field(default_factory=OperatorSettings)
    routes: tuple[RouteSettings, ...] = Field((), description="Left out: everything goes to every destination.")
    delivery: DeliverySettings = Field(default_factory=DeliverySettings)
    unavailable: UnavailableSettings = Field(default_factory=UnavailableSettings)
    links: LinkSettings = Field(default_factory=LinkSettings)
    answers: AnswerSettings = Field(default_factory=AnswerSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    retention: RetentionSettings = Field(default_factory=RetentionSettings)

    @model_validator(mode="after")
    def _names_refer_to_something(self) -> Self:
        namespaces = [source.namespace for source in self.sources]
        for number, namespace in enumerate(namespaces):
            if namespace in namespaces[:number]:
                raise ValueError(f'sources[{number}].namespace: "{namespace}" has a source already; one each')
        problem = bad_name(self.channels) or unknown_destination(self.channels, self._destination_names())
        if problem:
            raise ValueError(problem)
        return self

    def _destination_names(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield each place that names destinations, with the names."""
        for name, channel in self.channels.items():
            yield f"channels.{name}.fallback", channel.fallback
        yield "operator.notify", self.operator.notify
        for number, route in enumerate(self.routes):
            yield f"routes[{number}].notify", route.notify
            for step, escalation in enumerate(route.escalate):
                yield f"routes[{number}].escalate[{step}].notify", escalation.notify

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take nothing from anywhere but the arguments: the library's own reading ignores unknown variables."""
        return (init_settings,)
