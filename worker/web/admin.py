"""The admin application: health, readiness and metrics, for a listener that is never the public one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import structlog
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from worker.gauges import database_down, exposition
from worker.metrics import Metrics, Sample
from worker.web.readiness import Readiness

log = structlog.get_logger()

# Prometheus gives up after 10 s (its default scrape_timeout); the counters are worth showing without the gauges.
_GAUGES_WITHIN = timedelta(seconds=6)


class Admin:
    """Answers `/healthz` (the process runs), `/readyz` (and can work: 503 with reasons), `/metrics`.

    `is_stopping` makes it unready while it drains, so that no new work is sent here.
    """

    def __init__(
        self,
        readiness: Readiness,
        metrics: Metrics,
        gauges: Callable[[], Awaitable[Sequence[Sample]]],
        *,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._readiness = readiness
        self._metrics = metrics
        self._gauges = gauges
        self._is_stopping = is_stopping

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                Route("/healthz", self._healthz, methods=["GET"]),
                Route("/readyz", self._readyz, methods=["GET"]),
                Route("/metrics", self._metrics_text, methods=["GET"]),
            ]
        )

    async def _healthz(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _readyz(self, _request: Request) -> Response:
        found = await self._readiness.findings()
        is_stopping = self._is_stopping()
        is_ready = not is_stopping and all(item.reason is None for item in found if item.is_required)
        answer = {
            "ready": is_ready,
            "stopping": is_stopping,
            "dependencies": [
                {"name": item.name, "ok": item.reason is None, "required": item.is_required, "reason": item.reason}
                for item in found
            ],
        }
        return JSONResponse(answer, 200 if is_ready else 503)

    async def _metrics_text(self, _request: Request) -> Response:
        try:
            async with asyncio.timeout(_GAUGES_WITHIN.total_seconds()):
                samples = await self._gauges()
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            log.warning("metrics.gauges_failed", error=type(error).__name__)
            samples = database_down()
        return Response(exposition(self._metrics.registry, samples), media_type=CONTENT_TYPE_LATEST)
