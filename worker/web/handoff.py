"""The HTTP side of the handoff: who may speak for a namespace, within which bounds, and with which status it ends."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import structlog
from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from worker.web.bodies import read_body
from worker.web.models import Observations, Reconciliation, ReferencesQuery
from worker.web.rates import RateLimit
from worker.web.receiver import HandoffReceiver
from worker.web.refusals import Code, Refused, refusal, refused_input
from worker.web.tokens import Tokens

log = structlog.get_logger()

BASE = "/handoff/{namespace}"
_M = TypeVar("_M", bound=BaseModel)
_Work = Callable[["HandoffPoint", Request], Awaitable[dict[str, Any]]]
_NOBODY = Tokens(["sha256:" + "00" * 32])


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one request. The client of Cayu 0.15 waits 10 s; all of ours together stay below that."""

    max_body_bytes: int = 2**20
    body_within: timedelta = timedelta(seconds=4)
    answer_within: timedelta = timedelta(seconds=8)


@dataclass(frozen=True, slots=True)
class HandoffPoint:
    """One namespace's receiver, the tokens that open it, and how much it takes."""

    receiver: HandoffReceiver
    tokens: Tokens
    rate: RateLimit
    limits: Limits = field(default_factory=Limits)


class HandoffRoutes:
    """The four calls for every handoff source; `on_answer(call, status)` is told of each, for the metrics.

    An unknown namespace and a wrong token are answered alike, so names cannot be tried out.
    """

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
            response = await self._answer(request, work)
            self._on_answer(call, response.status_code)
            return response

        return Route(f"{BASE}/{call}", endpoint, methods=[method], name=call)

    async def _answer(self, request: Request, work: _Work) -> Response:
        try:
            point = self._point(request)
            async with asyncio.timeout(point.limits.answer_within.total_seconds()):
                return JSONResponse(await work(point, request))
        except Refused as refused:
            return refusal(
                refused.code, refused.message, closes=refused.code in (Code.BODY_TOO_LARGE, Code.BODY_TOO_SLOW)
            )
        except TimeoutError:
            return refusal(Code.TIMED_OUT, "the answer took too long; it may have been accepted, send it again")
        except (SQLAlchemyError, OSError) as error:
            log.warning("handoff.database_failed", error=type(error).__name__)
            return refusal(Code.DATABASE_BUSY, "the database does not answer; nothing is lost, send it again")

    def _point(self, request: Request) -> HandoffPoint:
        point = self._points.get(request.path_params["namespace"])
        scheme, _, presented = request.headers.get("authorization", "").partition(" ")
        tokens = point.tokens if point is not None else _NOBODY
        is_valid = tokens.accept(presented.strip())
        if point is None or not is_valid or scheme.lower() != "bearer":
            raise Refused(Code.INVALID_TOKEN, "no namespace of that name accepts that token")
        if not point.rate.allow():
            raise Refused(Code.RATE_LIMITED, "too many requests for this namespace")
        return point

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
        return await point.receiver.accept(await self._body(point, request, Observations))

    async def _reconciliations(self, point: HandoffPoint, request: Request) -> dict[str, Any]:
        return await point.receiver.report(await self._body(point, request, Reconciliation))

    async def _body(self, point: HandoffPoint, request: Request, model: type[_M]) -> _M:
        limits = point.limits
        body = await read_body(request, max_bytes=limits.max_body_bytes, within=limits.body_within)
        try:
            return model.model_validate_json(body)
        except ValidationError as error:
            raise refused_input(error, Code.INVALID_BODY) from None
