"""Who may post to a namespace, within which bounds, and with which status a call ends: for every door that pushes."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import structlog
from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from worker.web.bodies import read_body
from worker.web.rates import RateLimit
from worker.web.refusals import Code, Refused, refusal, refused_input
from worker.web.tokens import Tokens
from worker.web.within import within

log = structlog.get_logger()

_NOBODY = Tokens(["sha256:" + "00" * 32])
_M = TypeVar("_M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one request. The client of Cayu 0.15 waits 10 s; all of ours together stay below that."""

    max_body_bytes: int = 2**20
    body_within: timedelta = timedelta(seconds=4)
    answer_within: timedelta = timedelta(seconds=8)


class Point(Protocol):
    """One namespace behind a door: the tokens that open it, and how much it takes."""

    @property
    def tokens(self) -> Tokens:
        """Who may come in."""
        ...

    @property
    def rate(self) -> RateLimit:
        """How often."""
        ...

    @property
    def limits(self) -> Limits:
        """How large and how long a request may be."""
        ...


P = TypeVar("P", bound=Point)


async def answer(
    request: Request, points: Mapping[str, P], work: Callable[[P, Request], Coroutine[Any, Any, dict[str, Any]]]
) -> Response:
    """Let the request in, do the work, and say how it ended.

    An unknown namespace and a wrong token are answered alike, so names cannot be tried out.
    """
    try:
        point = _admit(request, points)
        return JSONResponse(await within(point.limits.answer_within, work(point, request)))
    except Refused as refused:
        return refusal(refused.code, refused.message, closes=refused.code in (Code.BODY_TOO_LARGE, Code.BODY_TOO_SLOW))
    except TimeoutError:
        return refusal(Code.TIMED_OUT, "the answer took too long; it may have been accepted, send it again")
    except (SQLAlchemyError, OSError) as error:
        log.warning("web.database_failed", error=type(error).__name__)
        return refusal(Code.DATABASE_BUSY, "the database does not answer; nothing is lost, send it again")


async def body_of(point: Point, request: Request, model: type[_M]) -> _M:
    """Return the request's body as `model`; raises Refused."""
    limits = point.limits
    body = await read_body(request, max_bytes=limits.max_body_bytes, within=limits.body_within)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise refused_input(error, Code.INVALID_BODY) from None


def _admit(request: Request, points: Mapping[str, P]) -> P:
    point = points.get(request.path_params["namespace"])
    scheme, _, presented = request.headers.get("authorization", "").partition(" ")
    tokens = point.tokens if point is not None else _NOBODY
    is_valid = tokens.accept(presented.strip())
    if point is None or not is_valid or scheme.lower() != "bearer":
        raise Refused(Code.INVALID_TOKEN, "no namespace of that name accepts that token")
    if not point.rate.allow():
        raise Refused(Code.RATE_LIMITED, "too many requests for this namespace")
    return point
