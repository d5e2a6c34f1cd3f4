"""A receiver of webhooks on loopback: verifies Standard Webhooks signatures, remembers every try and every id."""

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from aiohttp import web
from standardwebhooks import Webhook

from config.clock import Clock, SystemClock
from worker.channels.testing.http_server import HttpFault, LoopbackHttp

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105  # the example of the specification

# How far a timestamp may lie from now: https://github.com/standard-webhooks/standard-webhooks (read 2026-11-30).
TOLERANCE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class ReceivedTry:
    """One request that came in, good or not."""

    id: str
    timestamp: str
    signatures: tuple[str, ...]
    body: str
    is_verified: bool


class FakeWebhook:
    """Use as `async with FakeWebhook() as receiver`; `faults` is a queue of what goes wrong next.

    `tries` are all requests, `events` what was accepted by id, once each. `secrets` are those that the receiver
    knows: a try is verified if one of its signatures was made with one of them.
    """

    def __init__(self, *, secrets: Sequence[str] = (SECRET,), clock: Clock | None = None) -> None:
        self.secrets = list(secrets)
        self.tries: list[ReceivedTry] = []
        self.events: dict[str, dict[str, Any]] = {}
        self._clock = clock or SystemClock()
        self._server = LoopbackHttp(self._handle)

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._server.__aexit__(*exception)

    @property
    def url(self) -> str:
        """Return where to post; a part of it is secret."""
        return f"{self._server.url}/hooks/s3cret-in-the-url"

    @property
    def port(self) -> int:
        """Return the server's port."""
        return self._server.port

    @property
    def faults(self) -> deque[HttpFault]:
        """Return the queue of faults."""
        return self._server.faults

    async def _handle(self, request: web.Request) -> web.Response:
        body = await request.text()
        received = ReceivedTry(
            id=request.headers.get("webhook-id", ""),
            timestamp=request.headers.get("webhook-timestamp", ""),
            signatures=tuple(request.headers.get("webhook-signature", "").split()),
            body=body,
            is_verified=self._verify(request, body),
        )
        self.tries.append(received)

        async def usual() -> web.Response:
            if not received.is_verified:
                return web.Response(status=401, text="signature does not verify")
            self.events.setdefault(received.id, json.loads(body))
            return web.Response(status=204)

        return await self._server.respond(request, usual)

    def _verify(self, request: web.Request, body: str) -> bool:
        message_id, timestamp = request.headers.get("webhook-id"), request.headers.get("webhook-timestamp", "")
        if not message_id or not timestamp.isdecimal():
            return False
        signed_at = datetime.fromtimestamp(int(timestamp), UTC)
        if abs(self._clock.now() - signed_at) > TOLERANCE:
            return False
        signatures = request.headers.get("webhook-signature", "").split()
        return any(Webhook(secret).sign(message_id, signed_at, body) in signatures for secret in self.secrets)
