"""Reads what `handbell simulate` is given: a file of routes, and a file of what happens."""

import json
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from config.durations import Duration
from config.errors import SettingsError
from config.option_errors import first_of, option_error_lines
from config.route_settings import MatchSettings, RouteSettings
from reconciler.plan import Silence
from reconciler.routes import Routing, Subject, Target, default_routes
from reconciler.simulating import Event
from reconciler.states import AttentionState, Kind
from worker.route_wiring import match_of, routes_of


def _aware(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError('names no time zone: write an offset, such as "2026-03-03T18:55:00+01:00"')
    return at.astimezone(UTC)


Instant = Annotated[datetime, AfterValidator(_aware)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SilenceEntry(_Table):
    """A silence: what it matches, for how long."""

    match: MatchSettings = Field(default_factory=MatchSettings)
    lasts: Duration = Field(alias="for")


class Entry(_Table):
    """One thing that happens; a request's first entry also says what it is."""

    at: Instant
    attention_id: str = ""
    namespace: str = "prod"
    kind: Kind = Kind.TOOL_APPROVAL
    agent_name: str | None = None
    requester: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    state: AttentionState | None = None
    acknowledged_for: Duration | None = None
    dismissed: bool | None = None
    silence: SilenceEntry | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> "Entry":
        said = [self.state, self.acknowledged_for, self.dismissed, self.silence]
        if sum(value is not None for value in said) != 1:
            raise ValueError("say one of state, acknowledged_for, dismissed and silence")
        if self.silence is None and not self.attention_id:
            raise ValueError("attention_id is missing")
        return self

    def event(self) -> Event:
        """Return it as the simulation takes it."""
        if self.silence is not None:
            return Event(self.at, silence=Silence(match_of(self.silence.match), self.at + self.silence.lasts))
        subject = Subject(self.namespace, self.kind, self.agent_name, self.requester, self.labels)
        until = self.at + self.acknowledged_for if self.acknowledged_for is not None else None
        return Event(self.at, self.attention_id, subject, self.state, until, self.dismissed)


class RoutesFile(BaseModel):
    """A file of routes; a whole configuration will do, as everything else in it is passed over."""

    routes: tuple[RouteSettings, ...] = ()
    channels: dict[str, dict[str, Any]] = Field(default_factory=dict)


def read_routing(path: Path) -> Routing:
    """Read the routes; where the file has no `[channels]` the destinations are those that the routes name.

    Raises SettingsError (one line).
    """
    try:
        table = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None
    try:
        said = RoutesFile(**table)
    except ValidationError as error:
        lines = option_error_lines(error, model=RoutesFile)
        raise first_of([f"{path}: {line}" for line in lines]) from None
    routes = routes_of(said.routes)
    named = sorted({name for route in routes for name in route.destinations})
    unknown = [name for name in named if said.channels and name not in said.channels]
    if unknown:
        raise SettingsError(f"{path}: there is no [channels.{unknown[0]}], which a route names")
    targets = {name: _target(name, said.channels.get(name, {})) for name in said.channels or named}
    return Routing(routes or default_routes(targets), targets)


def read_events(path: Path) -> Sequence[Event]:
    """Read what happens, in time order; raises SettingsError (one line, with the number of the entry)."""
    try:
        loaded = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise SettingsError(f"{path} is not JSON: {error}") from None
    try:
        entries = TypeAdapter(list[Entry]).validate_python(loaded)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"{path}: entry {place}: {first['msg'].removeprefix('Value error, ')}") from None
    events = sorted((entry.event() for entry in entries), key=lambda event: event.at)
    known: set[str] = set()
    for event in events:
        if event.silence is None and event.state is None and event.attention_id not in known:
            raise SettingsError(f"{path}: {event.attention_id}: its first entry must say its state")
        known.add(event.attention_id)
    return events


def _target(name: str, channel: dict[str, Any]) -> Target:
    to = channel.get("to")
    recipients = tuple(str(one) for one in to) if channel.get("type") == "email" and isinstance(to, list) else (name,)
    return Target(name, str(channel.get("type", "unknown")), recipients)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8 text") from None
