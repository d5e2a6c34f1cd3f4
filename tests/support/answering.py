"""The smallest consumer: it answers every emitter and remembers what came. For tests of the agent's side alone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from redis.asyncio import Redis

from sinks.emit.names import CONSUMER_KEY, STREAM, reply_key


class Answering:
    """Reads the stream from its start and answers each entry as a real consumer would."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []

    async def run(self, client: Redis) -> None:
        """Answer until cancelled."""
        last = b"0"
        await client.set(CONSUMER_KEY, b"1")
        while True:
            for _, entries in await client.xread({STREAM: last}, block=1000):
                for entry_id, fields in entries:
                    last = entry_id
                    entry = {name.decode(): value.decode() for name, value in fields.items()}
                    self.entries.append(entry)
                    if "reply" in entry:
                        await client.execute_command("LPUSH", reply_key(entry["reply"]), b"1")  # type: ignore[no-untyped-call]


@contextlib.asynccontextmanager
async def answering(url: str) -> AsyncIterator[Answering]:
    """Answer every emitter of the server at `url` while entered."""
    consumer = Answering()
    async with Redis.from_url(url) as client:
        task = asyncio.create_task(consumer.run(client))
        try:
            yield consumer
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
