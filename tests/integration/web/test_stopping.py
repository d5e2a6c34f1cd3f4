"""A process that was told to stop says so on its admin port, while it finishes what senders have begun."""

import asyncio
import json
import re
import signal
from typing import Any

import httpx

from tests.support.handoff import active, body, reference
from tests.support.product import Product

CONFIGURATION = '[[sources]]\nnamespace = "prod"\ntype = "handoff"\ntokens = ["t"]\n'


async def test_stopping_process_is_not_ready_and_finishes_what_is_under_way(product: Product) -> None:
    product.configure(CONFIGURATION)
    run = await product.started()
    port, admin = (int(re.search(rf"{name} +http://127.0.0.1:(\d+)", run.stdout)[1]) for name in ("web", "admin"))
    sent = json.dumps(body(active(reference()))).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /handoff/prod/observations HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t\r\nContent-Length: {len(sent)}"
    )
    writer.write(head.encode() + b"\r\n\r\n" + sent[:1])
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{admin}") as probe:
        before = await probe.get("/readyz")
        run.send(signal.SIGTERM)
        while not (stopping := await _readiness(probe)).get("stopping"):
            pass
    writer.write(sent[1:])
    answer = await reader.read()
    writer.close()

    assert before.json()["ready"] is True
    assert stopping["ready"] is False
    assert answer.startswith(b"HTTP/1.1 200")
    assert await run.ended() == 0
    assert list(product.states().values()) == ["active"]


async def _readiness(probe: httpx.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = (await probe.get("/readyz")).json()
    assert "dependencies" in found, "the listener stops only after the public one"
    return found
