"""The HTTP side of the handoff: its four calls, each for a namespace."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from worker.web.guard import Limits, answer, body_of
from worker.web.models import Observations, Reconciliation, ReferencesQuery
from worker.web.rates import RateLimit
from worker.web.receiver import HandoffReceiver
from worker.web.refusals import Code, Refused, refused_input
from worker.web.tokens import Tokens

BASE = "/handoff/{namespace}"
_Work = Callable[["HandoffPoint", Request], Coroutine[Any, Any, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class HandoffPoint:
    """One namespace's receiver, the tokens that open it, and how much it takes."""

    receiver: HandoffReceiver
    tokens: Tokens
    rate: RateLimit
    limits: Limits = field(default_factory=Limits)


class HandoffRoutes:
    """The four calls for every handoff source; `on_answer(call, status)` is told of each, for the metrics."""

    def __init__(
        self,
        points: Mapping[str, HandoffPoint],
        *,
        on_answer: Callable[[str, int], None] = lambda _call, _status: None,
    ) -> None:
        self._points = points
        self._on_answer = on_answer

    def routes(self) -> list[Route]:
        """Return the routes for the public app."""
        return [
            self._route("state", "GET", self._state),
            self._route("references", "GET", self._references),
            self._route("observations", "POST", self._observations),
            self._route("reconciliations", "POST", self._reconciliations),
        ]

    def _route(self, call: str, method: str, work: _Work) -> Route:
        async def endpoint(request: Request) -> Response:
            response = await answer(request, self._points, work)
            self._on_answer(call, response.status_code)
            return response

        return Route(f"{BASE}/{call}", endpoint, methods=[method], name=call)

    async def _state(self, point: HandoffPoint, _request: Request) -> dict[str, Any]:
        return await point.receiver.state()

    async def _references(self, point: HandoffPoint, request: Request) -> dict[str, Any]:
        said = request.query_params.multi_items()
        if len(said) != len(dict(said)):
            raise Refused(Code.INVALID_QUERY, "a query parameter is given twice")
        try:
            query = ReferencesQuery.model_validate(dict(said))
        except ValidationError as error:
            raise refused_input(error, Code.INVALID_QUERY) from None
        return await point.receiver.references(query)

    async def _observations(self, point: HandoffPoint, request: Request) -> dict[str, Any]:
        return await point.receiver.accept(await body_of(point, request, Observations))

    async def _reconciliations(self, point: HandoffPoint, request: Request) -> dict[str, Any]:
        return await point.receiver.report(await body_of(point, request, Reconciliation))
