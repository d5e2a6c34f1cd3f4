"""Asks an agent's protected server: one bounded GET at a time becomes an answer, or a SourceError of a fixed reason.

A server that is overloaded or broken (429, 5xx) or does not answer is left alone for a while, longer each time or as
long as it says itself (Retry-After, RFC 9110 section 10.2.3); meanwhile every question fails at once.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout

from config.clock import Clock
from reconciler.errors import SourceRefused, SourceUnavailable

# A page of 200 pending actions takes the server two seconds of computation, more where it is busy.
_WITHIN = timedelta(seconds=60)
_CONNECT_SECONDS = 10

# 200 pending actions with their contents, which are dropped here.
_MAX_BODY_BYTES = 32 * 2**20

_FIRST_BACK_OFF = timedelta(seconds=2)
_LONGEST_BACK_OFF = timedelta(minutes=5)
_LONGEST_RETRY_AFTER = timedelta(hours=1)
_MOST_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said: 200 with its JSON object, or another status that the caller asked to see."""

    status: int
    body: Mapping[str, Any]


class HttpClient:
    """Questions to one server; `place` is how messages call it, without its address, `token_key` the option of `token`.

    An answer that is not there `within` that time is none.
    """

    def __init__(
        self,
        http: ClientSession,
        clock: Clock,
        *,
        url: str,
        token: str | None,
        place: str,
        token_key: str = "token",  # noqa: S107  # a key's name
        within: timedelta = _WITHIN,
    ) -> None:
        self._http = http
        self._clock = clock
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._place = place
        self._token_key = token_key
        self._timeout = ClientTimeout(total=within.total_seconds(), connect=_CONNECT_SECONDS)
        self._back_off = timedelta(0)
        self._not_before: datetime | None = None

    async def get(
        self, path: str, query: Mapping[str, str] | None = None, *, also: frozenset[int] = frozenset()
    ) -> Answer:
        """Ask for `path`; statuses in `also` are answers too.

        Raises SourceRefused (`refused`: credentials), or SourceUnavailable (`unreachable`, `overloaded`,
        `backing_off`, `bad_answer`), without address, token or anything that the server said.
        """
        if self._not_before is not None and self._clock.now() < self._not_before:
            raise SourceUnavailable("backing_off", f"{self._place} failed lately and is left alone for now")
        try:
            async with self._http.get(
                self._url + path, params=query, headers=self._headers, timeout=self._timeout, allow_redirects=False
            ) as response:
                self._judge(response, also)
                body = await response.content.read(_MAX_BODY_BYTES + 1)
                while not response.content.at_eof() and len(body) <= _MAX_BODY_BYTES:
                    body += await response.content.read(_MAX_BODY_BYTES + 1 - len(body))
        except (TimeoutError, ClientError, OSError) as error:
            self._leave_alone(None)
            raise SourceUnavailable("unreachable", f"{self._place} does not answer ({type(error).__name__})") from None
        self._back_off, self._not_before = timedelta(0), None
        return Answer(response.status, self._parsed(body) if response.status == HTTPStatus.OK else {})

    def _judge(self, response: ClientResponse, also: frozenset[int]) -> None:
        status = response.status
        if status == HTTPStatus.OK or status in also:
            return
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise SourceRefused("refused", f"{self._place} refuses us ({status}): correct {self._token_key}")
        if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._leave_alone(_retry_after(response.headers.get("Retry-After"), self._clock.now()))
            raise SourceUnavailable("overloaded", f"{self._place} answered {status}")
        raise SourceUnavailable("bad_answer", f"{self._place} answered {status}: is url a Cayu server's?")

    def _parsed(self, body: bytes) -> Mapping[str, Any]:
        try:
            parsed = json.loads(body) if len(body) <= _MAX_BODY_BYTES else None
        except (ValueError, RecursionError):
            parsed = None
        if not isinstance(parsed, dict):
            raise SourceUnavailable("bad_answer", f"{self._place} answered no JSON object: is url a Cayu server's?")
        return parsed

    def _leave_alone(self, retry_after: timedelta | None) -> None:
        self._back_off = min(max(self._back_off * 2, _FIRST_BACK_OFF), _LONGEST_BACK_OFF)
        wait = self._back_off if retry_after is None else min(max(retry_after, _FIRST_BACK_OFF), _LONGEST_RETRY_AFTER)
        self._not_before = self._clock.now() + wait


def _retry_after(text: str | None, now: datetime) -> timedelta | None:
    """Read both forms of the header, seconds and a date; None where it is absent or neither."""
    if text is None:
        return None
    if text.strip().isascii() and text.strip().isdigit():
        # More digits than Python takes for a number mean no less than so many.
        return timedelta(seconds=int(text.strip()[:_MOST_DIGITS]))
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)) - now
