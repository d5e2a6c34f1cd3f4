"""What an operator sees of the web role: that it stops while it finishes what was begun, and what senders report."""

import asyncio
import json
import re
import signal
from typing import Any

import httpx

from tests.support.handoff import active, body, reference
from tests.support.product import Product
from worker.web.models import PROTOCOL

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


async def test_status_shows_the_newest_report_of_a_sender(product: Product) -> None:
    product.configure(CONFIGURATION)
    run = await product.started()
    port = int(re.search(r"web +http://127.0.0.1:(\d+)", run.stdout)[1])
    report = {"issues": ["page_too_large"], "observed": 7, "pages": 3, "scan_complete": False, "verify_complete": True}
    head = {"protocol": PROTOCOL, "runtime_version": "0.15.0"}
    async with httpx.AsyncClient(headers={"Authorization": "Bearer t"}) as client:
        await client.post(f"http://127.0.0.1:{port}/handoff/prod/reconciliations", json={**head, **report})
    status = await product.do("status")

    [line] = [line for line in status.stdout.splitlines() if "newest report" in line]
    assert all(said in line for said in ("prod", "0.15.0", "observed 7", "page_too_large"))


async def _readiness(probe: httpx.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = (await probe.get("/readyz")).json()
    assert "dependencies" in found, "the listener stops only after the public one"
    return found
