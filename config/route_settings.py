"""The `[[routes]]` tables: who is told about which requests, when, and how insistently."""

from collections.abc import Mapping
from datetime import time, timedelta
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from config.durations import Duration
from config.names import DestinationName
from config.setting_tables import SettingsTable

# The kinds of request that a route can name (a test holds them equal to what the reconciler knows).
KINDS = ("user_input", "tool_approval", "manual_recovery", "agent_input")


def _listed(value: object) -> object:
    """Let one text stand for a list of one."""
    return (value,) if isinstance(value, str) else value


def _some_kind_fits(globs: tuple[str, ...]) -> tuple[str, ...]:
    for glob in globs:
        if not any(fnmatchcase(kind, glob) for kind in KINDS):
            raise ValueError(f"fits no kind of request: they are {', '.join(KINDS)}")
    return globs


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, malformed, or a folder
        raise ValueError('is no time zone: write an IANA name such as "Europe/Berlin"') from None
    return name


def _time_of_day(value: object) -> object:
    try:
        return time.fromisoformat(value) if isinstance(value, str) and len(value) == len("22:00") else value
    except ValueError:
        return value


Globs = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_listed)]
KindGlobs = Annotated[Globs, AfterValidator(_some_kind_fits)]
TimeOfDay = Annotated[time, BeforeValidator(_time_of_day)]


class MatchSettings(SettingsTable):
    """Which requests a route is for: every key that is given must fit; each takes one shell glob or a list of them."""

    namespace: Globs = Field((), description="Namespaces, as shell globs (case-sensitive).")
    kind: KindGlobs = Field(
        (), description=f"Kinds of request, as shell globs over {', '.join(f'`{kind}`' for kind in KINDS)}."
    )
    agent: Globs = Field((), description='Names of agents, as shell globs, for instance "billing-*".')
    requester: Globs = Field((), description="Who set the agent to work, as shell globs.")
    labels: Mapping[str, Globs] = Field(
        default_factory=dict, description="Labels of the session: each that is named must fit one of its globs."
    )


class EscalationSettings(SettingsTable):
    """One step of an escalation: who is told too where a request still waits."""

    after: Duration = Field(
        ge=timedelta(seconds=1), description="How long after the opening the step is taken, where still active."
    )
    notify: tuple[DestinationName, ...] = Field(min_length=1, description="The destinations that are told then.")


class QuietSettings(SettingsTable):
    """Hours in which nobody is told; what falls into them goes once, at their end, where still active."""

    begins_at: TimeOfDay = Field(alias="from", description='When the quiet begins, "HH:MM" in `zone`.')
    ends_at: TimeOfDay = Field(alias="to", description='When it ends, "HH:MM"; before `from`: on the next day.')
    zone: Annotated[str, AfterValidator(_known_zone)] = Field(
        description='An IANA time zone such as "Europe/Berlin"; daylight saving is followed.'
    )
    except_kinds: KindGlobs = Field((), alias="except", description="Kinds of request that break through the quiet.")

    @model_validator(mode="after")
    def _has_a_length(self) -> Self:
        if self.begins_at == self.ends_at:
            raise ValueError("`from` and `to` are the same moment: leave quiet out, or give it a length")
        return self


class RouteSettings(SettingsTable):
    """One `[[routes]]` table. The first route that fits decides, and the next ones too where it says `continue`."""

    match: MatchSettings = Field(default_factory=MatchSettings, description="Which requests; left out: all.")
    notify: tuple[DestinationName, ...] = Field(description="The destinations that are told; an empty list: nobody.")
    goes_on: bool = Field(False, alias="continue", description="Whether later routes that fit are followed too.")
    remind_every: Duration | None = Field(
        None, ge=timedelta(seconds=10), description="How long after the last message a reminder goes; left out: none."
    )
    remind_at_most: int | None = Field(
        None, ge=1, le=1000, description="How many reminders one request gets; left out: no limit."
    )
    escalate: tuple[EscalationSettings, ...] = Field((), description="Steps of escalation, in the order of `after`.")
    stagger: Duration | None = Field(
        None,
        ge=timedelta(seconds=1),
        description="How long each destination of `notify` has before the next one is told; left out: all at once.",
    )
    quiet: QuietSettings | None = Field(None, description="Hours in which nobody is told; left out: none.")
    digest_window: Duration | None = Field(
        None,
        ge=timedelta(seconds=1),
        le=timedelta(days=7),
        description="How long requests are gathered into one message per destination; left out: one message each.",
    )
    storm_limit: int | None = Field(
        None, ge=1, le=10_000, description="Openings a minute above which a destination gets digests; left out: never."
    )

    explain: bool = Field(False, description="Whether each message ends with why its reader is told.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.remind_at_most is not None and self.remind_every is None:
            raise ValueError("remind_at_most is given without remind_every: say how often to remind")
        steps = [step.after for step in self.escalate]
        if any(later <= earlier for earlier, later in pairwise(steps)):
            raise ValueError("escalate: each step comes later than the one before it")
        if self.stagger is not None and len(self.notify) < 2:
            raise ValueError("stagger is given, but notify names no second destination to wait with")
        return self
