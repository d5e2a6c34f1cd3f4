"""Reads a request's body within bounds of size and time."""

import asyncio
from datetime import timedelta

from starlette.requests import ClientDisconnect, Request

from worker.web.refusals import Code, Refused

# Closing a connection whose sender is still writing resets it, and the sender may never read why. So this many times
# the bound is read and thrown away first.
_SWALLOWED_TIMES = 8


async def read_body(request: Request, *, max_bytes: int, within: timedelta) -> bytes:
    """Return the body; raises Refused where it is longer, slower or not sent to its end."""
    body = bytearray()
    count = 0
    try:
        async with asyncio.timeout(within.total_seconds()):
            async for chunk in request.stream():
                count += len(chunk)
                if count <= max_bytes:
                    body += chunk
                elif count > max_bytes * _SWALLOWED_TIMES:
                    break
    except TimeoutError:
        raise Refused(Code.BODY_TOO_SLOW, "the body did not come in time") from None
    except ClientDisconnect:
        raise Refused(Code.INVALID_BODY, "the connection ended before the body") from None
    if count > max_bytes:
        raise Refused(Code.BODY_TOO_LARGE, f"at most {max_bytes} bytes in one body")
    return bytes(body)
