"""One POST to a provider through a shared session: what it answered, or the outcome where no answer came."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import ClientResponse, ClientSession
from yarl import URL

from worker.channels.http_outcomes import EXCHANGE_ERRORS, outcome_of_error
from worker.channels.http_sessions import request_timeout
from worker.channels.outcomes import Outcome

# An answer is drained so that its connection can be used again; a longer one is not worth it.
DRAINED_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; its body is not read, for nothing is decided by it."""

    status: int
    headers: Mapping[str, str]


async def post(
    session: ClientSession, url: str, body: bytes, *, headers: Mapping[str, str], timeout_seconds: float
) -> Answer | Outcome:
    """Send `body`, follow nothing; once the status has come, what happens to the rest of the answer is no matter."""
    try:
        async with session.post(
            URL(url),
            data=body,
            headers=headers,
            allow_redirects=False,
            timeout=request_timeout(timeout_seconds),
        ) as response:
            await _drain(response)
            return Answer(response.status, dict(response.headers))
    except EXCHANGE_ERRORS as error:
        return outcome_of_error(error)


async def _drain(response: ClientResponse) -> None:
    with suppress(*EXCHANGE_ERRORS):
        await response.content.read(DRAINED_BYTES)
