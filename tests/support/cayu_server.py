"""A Cayu server over a store, protected by a bearer token, live on loopback."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import uvicorn
from cayu.server import AuthContext, ServerConfig, create_server
from fastapi import HTTPException, Request

from tests.support.cayu_stores import CayuStore
from tests.support.sources import TOKEN


async def _authenticate(request: Request) -> AuthContext:
    if request.headers.get("authorization") != f"Bearer {TOKEN}":
        raise HTTPException(status_code=401, detail="no")
    return AuthContext(subject="handbell")


@asynccontextmanager
async def cayu_server(store: CayuStore) -> AsyncIterator[str]:
    """Serve the store with the agents' application for the time of a block; give the base URL."""
    async with store.runtime() as (_store, app):
        asgi = create_server(app, config=ServerConfig.protected(_authenticate))
        server = uvicorn.Server(uvicorn.Config(asgi, log_level="critical", lifespan="on", timeout_graceful_shutdown=1))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            task = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True
                with suppress(asyncio.CancelledError):
                    await task
