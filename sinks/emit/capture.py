"""The capture hook: hands a pause of this process to Handbell before anybody sees it.

A pause's token exists nowhere but in the stream of the run that paused. With it Handbell can carry a person's answer
back; without it people are told all the same (the ledger has the pause), and can only be shown the way. So the event
is passed on only after Handbell's answer, which comes after its commit. Standard library only.
"""

import asyncio
import base64
import binascii
import contextlib
import json
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from .errors import NotCapturedReason, PauseNotCaptured, SinkConfigError

PROTOCOL = "handbell.capture/v1"

_FIRST_RETRY_SECONDS = 0.1
_LONGEST_RETRY_SECONDS = 2.0
_ONE_TRY_SECONDS = 10.0  # Handbell answers within 8
_MAX_ANSWER_BYTES = 64 * 1024
# What may pass by itself: too many requests, or Handbell's own trouble.
_TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CapturedPause:
    """What Handbell is told of a pause. `envelope` is the token as it travels; it stands in no repr and no log."""

    jti: str
    name: str
    envelope: str = field(repr=False)
    session_id: str = ""
    run_id: str = ""
    root_run_id: str = ""
    call_id: str = ""
    thread_id: str = ""
    checkpoint_id: str = ""
    resumable: bool = False


class PauseCapture:
    """Posts pauses to one namespace of Handbell: `url` is `{public_url}/capture/{namespace}`.

    A pause may be posted again: Handbell keeps the first. What may pass by itself is tried again for
    `within_seconds` in all. Raises SinkConfigError where an argument cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str,
        within_seconds: float = 10.0,
        if_lost: Literal["raise", "show"] = "raise",
        encode_token: Callable[[Any], str] | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "/capture/" not in parts.path:
            raise SinkConfigError("url is not of the form https://HOST/capture/NAMESPACE")
        if not token or not token.isascii() or not token.isprintable():
            raise SinkConfigError("token is empty or has characters that no header can carry")
        if not within_seconds > 0:
            raise SinkConfigError("within_seconds is not above zero")
        if if_lost not in ("raise", "show"):
            raise SinkConfigError('if_lost is neither "raise" nor "show"')
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._within_seconds = within_seconds
        self._if_lost = if_lost
        self._encode_token = encode_token
        self._opener = urllib.request.build_opener(_NoRedirect())

    async def stream(self, events: AsyncIterable[_T]) -> AsyncIterator[_T]:
        """Pass the events of a run on, each pause only once Handbell has committed it.

        Raises PauseNotCaptured instead of showing a pause that was not captured; with `if_lost="show"` it is shown
        all the same. Either way the run is paused, and Handbell's sweep of the ledger tells people of it.
        """
        async for event in events:
            pause = pause_of(event, self._encode_token)
            if pause is not None:
                await self._capture_or_say(pause)
            yield event

    async def capture(self, pause: CapturedPause) -> None:
        """Return once Handbell has committed the pause; raises PauseNotCaptured."""
        body = json.dumps({"protocol": PROTOCOL, **asdict(pause)}).encode()
        ends_at = time.monotonic() + self._within_seconds
        delay = _FIRST_RETRY_SECONDS
        while True:
            remaining = ends_at - time.monotonic()
            reason = await asyncio.to_thread(self._post, body, max(0.05, min(_ONE_TRY_SECONDS, remaining)))
            if reason is None:
                return
            if reason is NotCapturedReason.REFUSED or time.monotonic() + delay >= ends_at:
                raise PauseNotCaptured(reason)
            await asyncio.sleep(delay)
            delay = min(2 * delay, _LONGEST_RETRY_SECONDS)

    async def _capture_or_say(self, pause: CapturedPause) -> None:
        if self._if_lost == "raise":
            await self.capture(pause)
            return
        with contextlib.suppress(PauseNotCaptured):
            await self.capture(pause)

    def _post(self, body: bytes, timeout_seconds: float) -> NotCapturedReason | None:
        """Make one try; return why it failed, None where it did not."""
        request = urllib.request.Request(self._url, body, self._headers, method="POST")  # noqa: S310  # checked above
        try:
            with self._opener.open(request, timeout=timeout_seconds) as response:
                response.read(_MAX_ANSWER_BYTES)
                return None if response.status == 200 else NotCapturedReason.REFUSED
        except urllib.error.HTTPError as error:
            with error:
                return NotCapturedReason.BUSY if error.code in _TRANSIENT_STATUSES else NotCapturedReason.REFUSED
        except TimeoutError:
            return NotCapturedReason.TIMEOUT
        except (OSError, ValueError):  # http.client's errors are either; none of their texts goes further
            return NotCapturedReason.UNREACHABLE


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to another place."""

    def redirect_request(self, *_arguments: Any, **_keywords: Any) -> None:
        """Refuse it: the status itself becomes the error."""


def pause_of(event: Any, encode_token: Callable[[Any], str] | None = None) -> CapturedPause | None:
    """Return the pause in an event of a run, None where it is none; events are read by their attributes.

    Known are the interaction event (or the taken pause that holds it) of the human-interaction capability, and an
    event that carries a signed token as `pause_token`, as symfonic-core 9.12 streams it. Raises SinkConfigError for a
    pause whose token cannot be written down.
    """
    token = getattr(event, "pause_token", None)
    if isinstance(token, str):
        return _of_token(event, token)
    inner = getattr(event, "event", event)
    pause = getattr(inner, "pause", None)
    claims = getattr(pause, "claims", None)
    if pause is None or claims is None:
        return None
    return CapturedPause(
        jti=claims.jti,
        name=claims.name,
        envelope=_written(getattr(event, "token", None), pause.envelope, encode_token),
        session_id=claims.session_id,
        run_id=claims.run_id,
        root_run_id=claims.root_run_id,
        call_id=claims.tool_call_id or claims.interrupt_id,
        thread_id=claims.thread_id,
        checkpoint_id=claims.checkpoint_id,
        resumable=getattr(inner, "resumable", False) is True,
    )


def _written(token: Any, envelope: Any, encode_token: Callable[[Any], str] | None) -> str:
    text = encode_token(envelope) if encode_token is not None else token or getattr(envelope, "token", None)
    if not isinstance(text, str) or not text:
        raise SinkConfigError("a pause's token cannot be written down: give encode_token")
    return text


def _of_token(event: Any, token: str) -> CapturedPause:
    """Read what a token says of itself; whoever redeems it verifies it, nobody before."""
    try:
        encoded = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
        jti = claims["jti"]
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        raise SinkConfigError("a pause's token does not say its id") from None

    def said(*names: str) -> str:
        return next((claims[name] for name in names if isinstance(claims.get(name), str) and claims[name]), "")

    return CapturedPause(
        jti=str(jti),
        name=said("name") or "ask_user",
        envelope=token,
        session_id=said("session_id"),
        run_id=said("run_id"),
        root_run_id=said("root_run_id", "run_id"),
        call_id=said("tool_call_id", "interrupt_id"),
        thread_id=said("thread_id"),
        checkpoint_id=said("checkpoint_id"),
        resumable=getattr(event, "resumable", False) is True,
    )
