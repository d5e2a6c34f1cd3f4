"""Lets a server stop without breaking a request: those under way are answered, later ones are told to come back."""

import asyncio
from datetime import timedelta

from starlette.types import ASGIApp, Receive, Scope, Send

from worker.web.refusals import Code, refusal


class Drain:
    """Wraps an ASGI application and counts what is under way; `drain` begins the end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._under_way = 0
        self._is_draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def is_draining(self) -> bool:
        """Answer whether new requests are already turned away."""
        return self._is_draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 503 where the end has begun."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._is_draining:
            answer = refusal(Code.SHUTTING_DOWN, "this process is stopping; send it again", closes=True)
            await answer(scope, receive, send)
            return
        self._under_way += 1
        self._idle.clear()
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def drain(self, within: timedelta) -> bool:
        """Turn new requests away and wait for those under way; False where some are left after `within`."""
        self._is_draining = True
        try:
            await asyncio.wait_for(self._idle.wait(), within.total_seconds())
        except TimeoutError:
            return False
        return True
