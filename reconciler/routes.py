"""Which destinations a request is for: an ordered list of routes, each with matchers; made from the settings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from types import MappingProxyType

from reconciler.quiet import Quiet
from reconciler.states import Kind

_NONE: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Target:
    """A configured destination as the plan sees it: its name, its channel's type and its stable recipients.

    `fallback` names the destinations that stand in while this one is broken.
    """

    name: str
    channel: str
    recipients: tuple[str, ...]
    fallback: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """What a route may look at: content-free."""

    namespace: str
    kind: Kind
    agent_name: str | None
    requester: str | None
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Match:
    """Shell globs, case-sensitive; an empty tuple matches everything, a missing value matches only `*`."""

    namespace: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    requester: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NONE)

    def accepts(self, subject: Subject) -> bool:
        """Answer whether every matcher that is stated accepts the subject."""
        return (
            _any_glob(self.namespace, subject.namespace)
            and _any_glob(self.kind, subject.kind.value)
            and _any_glob(self.agent, subject.agent_name)
            and _any_glob(self.requester, subject.requester)
            and all(_any_glob(globs, subject.labels.get(name)) for name, globs in self.labels.items())
        )


@dataclass(frozen=True, slots=True)
class Escalation:
    """Who is told too where a request still waits `after` its opening was due."""

    after: timedelta
    notify: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """One `[[routes]]` table; `name` is how decisions name it (`routes[0]`, or `default`)."""

    name: str
    match: Match
    notify: tuple[str, ...]
    goes_on: bool = False  # `continue`: later routes may match too
    remind_every: timedelta | None = None
    remind_at_most: int | None = None
    escalate: tuple[Escalation, ...] = ()
    stagger: timedelta | None = None
    quiet: Quiet | None = None
    digest_window: timedelta | None = None
    storm_limit: int | None = None
    explains: bool = False  # whether each message says why its reader is told

    @property
    def destinations(self) -> tuple[str, ...]:
        """Return every destination that the route names, those of `notify` first."""
        return (*self.notify, *(name for step in self.escalate for name in step.notify))


@dataclass(frozen=True, slots=True)
class Routing:
    """Who is to be told: the routes and the destinations that they name; replaced as a whole on a reload."""

    routes: Sequence[Route]
    targets: Mapping[str, Target]

    @property
    def gathers(self) -> bool:
        """Answer whether any route lets requests be told together."""
        return any(route.digest_window is not None or route.storm_limit is not None for route in self.routes)

    def targets_of(self, names: Iterable[str]) -> list[Target]:
        """Return the destinations of these names that are configured."""
        return [self.targets[name] for name in names if name in self.targets]

    def owner(self, subject: Subject, destination: str) -> Route | None:
        """Return the route by which `destination` is told of the subject, itself or as somebody's fallback."""
        decided = list(matching(self.routes, subject))
        for route in decided:
            if destination in route.destinations:
                return route
        for route in decided:
            if any(destination in target.fallback for target in self.targets_of(route.destinations)):
                return route
        return None


def matching(routes: Sequence[Route], subject: Subject) -> Iterable[Route]:
    """Yield the routes that decide about the subject: up to and with the first that does not go on."""
    for route in routes:
        if route.match.accepts(subject):
            yield route
            if not route.goes_on:
                return


def default_routes(destinations: Iterable[str]) -> tuple[Route, ...]:
    """Return what holds where no `[[routes]]` is configured: everything to every destination."""
    return (Route(name="default", match=Match(), notify=tuple(destinations)),)


def _any_glob(globs: tuple[str, ...], value: str | None) -> bool:
    return not globs or any(glob == "*" if value is None else fnmatchcase(value, glob) for glob in globs)
