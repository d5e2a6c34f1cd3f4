"""The public application: what may be reached from outside. Everything it refuses or fails at is JSON."""

from collections.abc import Sequence

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from worker.web.openapi import handoff_schema
from worker.web.refusals import Code, refusal

log = structlog.get_logger()


def public_app(routes: Sequence[BaseRoute]) -> Starlette:
    """Make the application of `routes`, with `/openapi.json` beside them; stateless, open at once."""
    app = Starlette(
        routes=[Route("/openapi.json", _openapi, methods=["GET"]), *routes],
        exception_handlers={HTTPException: _http_problem, Exception: _unexpected},
    )
    app.router.redirect_slashes = False  # a redirect would turn a POST into something else
    return app


async def _openapi(_request: Request) -> Response:
    return JSONResponse(handoff_schema())


def _http_problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        answer = refusal(Code.METHOD_NOT_ALLOWED, "not with this method")
        answer.headers.update(error.headers or {})
        return answer
    return refusal(Code.NOT_FOUND, "nothing is here")


def _unexpected(request: Request, error: Exception) -> Response:
    log.error("web.failed", method=request.method, error=type(error).__name__, exc_info=error)
    return refusal(Code.UNEXPECTED, "this is a defect of the receiver; it is in its log")
