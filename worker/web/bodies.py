"""Reads a request's body within bounds of size and time."""

import asyncio
from datetime import timedelta

from starlette.requests import ClientDisconnect, Request

from worker.web.refusals import Code, Refused


async def read_body(request: Request, *, max_bytes: int, within: timedelta) -> bytes:
    """Return the body; raises Refused where it is longer, slower or not sent to its end."""
    declared = request.headers.get("content-length", "0")
    too_large = Refused(Code.BODY_TOO_LARGE, f"at most {max_bytes} bytes in one body")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(within.total_seconds()):
            async for chunk in request.stream():
                body += chunk
                if len(body) > max_bytes:
                    raise too_large
    except TimeoutError:
        raise Refused(Code.BODY_TOO_SLOW, "the body did not come in time") from None
    except ClientDisconnect:
        raise Refused(Code.INVALID_BODY, "the connection ended before the body") from None
    return bytes(body)
