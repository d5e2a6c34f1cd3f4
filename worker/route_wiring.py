"""Turns the `[[routes]]` tables into the plain routes that everything else works with."""

from collections.abc import Iterable, Sequence

from config.route_settings import MatchSettings, QuietSettings, RouteSettings
from reconciler.quiet import Quiet
from reconciler.routes import Escalation, Match, Route, Routing, default_routes
from worker.channels.destination import Destination
from worker.delivery.tools import target_of


def routing_of(routes: Sequence[RouteSettings], destinations: Iterable[Destination]) -> Routing:
    """Return who is told what; without routes everything goes to every destination."""
    targets = {item.name: target_of(item) for item in destinations}
    return Routing(routes_of(routes) or default_routes(targets), targets)


def routes_of(routes: Sequence[RouteSettings]) -> tuple[Route, ...]:
    """Return the routes, each named by its place."""
    return tuple(_route(number, route) for number, route in enumerate(routes))


def match_of(match: MatchSettings) -> Match:
    """Return the matcher of a route or a silence."""
    return Match(
        namespace=match.namespace,
        kind=match.kind,
        agent=match.agent,
        requester=match.requester,
        labels=match.labels,
    )


def _route(number: int, route: RouteSettings) -> Route:
    return Route(
        name=f"routes[{number}]",
        match=match_of(route.match),
        notify=route.notify,
        goes_on=route.goes_on,
        remind_every=route.remind_every,
        remind_at_most=route.remind_at_most,
        escalate=tuple(Escalation(step.after, step.notify) for step in route.escalate),
        stagger=route.stagger,
        quiet=_quiet(route.quiet) if route.quiet is not None else None,
        digest_window=route.digest_window,
        storm_limit=route.storm_limit,
        explains=route.explain,
    )


def _quiet(quiet: QuietSettings) -> Quiet:
    return Quiet(quiet.begins_at, quiet.ends_at, quiet.zone, quiet.except_kinds)
