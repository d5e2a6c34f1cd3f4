"""A Slack on loopback: the few methods that Handbell uses, with Slack's own limits, errors and faults on order."""

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Self

from aiohttp import web

from config.clock import Clock, SystemClock
from worker.channels.testing.http_server import HttpFault, LoopbackHttp

TOKEN = "xoxb-0000-fake"  # noqa: S105  # opens only this fake
CHANNEL = "C0123456789"

SCOPES = "chat:write,channels:history,groups:history"

_ROWS_PER_PAGE = 100


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """A message that Slack keeps, as it is now; `edits` counts how often it was changed."""

    channel: str
    ts: str
    thread_ts: str | None
    text: str
    blocks: tuple[Mapping[str, Any], ...]
    metadata: Mapping[str, Any]
    edits: int = 0


def slack_error(error: str, *, only: str = "", accepts: bool = False) -> HttpFault:
    """Return a fault that answers 200 with `ok: false` and `error`."""
    body = json.dumps({"ok": False, "error": error})
    return HttpFault(body=body, content_type="application/json", only=only, accepts=accepts)


def on_method(method: str, fault: HttpFault) -> HttpFault:
    """Return `fault`, kept for the next call of `method`."""
    return replace(fault, only="/" + method)


@dataclass
class _Call:
    method: str
    arguments: dict[str, Any] = field(default_factory=dict)


class FakeSlack:
    """Use as `async with FakeSlack() as slack`; `messages` by ts, `calls` by name, `faults` a queue.

    `archived` holds archived channels, `is_revoked` takes the token back, `delete` removes a message, `hook_url`
    is an incoming webhook whose messages are `hooked`.
    """

    def __init__(self, *, clock: Clock | None = None) -> None:
        self.messages: dict[str, SlackMessage] = {}
        self.hooked: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.archived: set[str] = set()
        self.is_revoked = False
        self._counter = count()
        self._clock = clock or SystemClock()
        self._server = LoopbackHttp(self._handle)

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._server.__aexit__(*exception)

    @property
    def url(self) -> str:
        """Return what `api_url` is to be set to."""
        return f"{self._server.url}/api/"

    @property
    def hook_url(self) -> str:
        """Return an incoming webhook's URL; its path is secret."""
        return f"{self._server.url}/services/T000/B000/s3cret-in-the-url"

    @property
    def port(self) -> int:
        """Return the server's port."""
        return self._server.port

    @property
    def faults(self) -> deque[HttpFault]:
        """Return the queue of faults."""
        return self._server.faults

    def delete(self, ts: str) -> None:
        """Remove a message, as its readers may."""
        del self.messages[ts]

    async def _handle(self, request: web.Request) -> web.Response:
        call = _Call(request.path.rpartition("/")[2], await _arguments(request))
        if request.path.startswith("/services/"):
            return await self._server.respond(request, lambda: self._hook(call.arguments))
        self.calls.append(call.method)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return await self._server.respond(request, lambda: self._answer(call, token))

    async def _hook(self, arguments: dict[str, Any]) -> web.Response:
        problem = limit_exceeded(arguments)
        if problem:
            return web.Response(status=400, text=problem)
        self.hooked.append(arguments)
        return web.Response(text="ok")

    async def _answer(self, call: _Call, token: str) -> web.Response:
        if token != TOKEN:
            return _json(error="invalid_auth")
        if self.is_revoked:
            return _json(error="token_revoked")
        match call.method:
            case "auth.test":
                return _json(team="Fake", user="handbell", team_id="T000", bot_id="B000")
            case "chat.postMessage":
                return self._post(call.arguments)
            case "chat.update":
                return self._update(call.arguments)
            case "conversations.history" | "conversations.replies":
                return self._read(call.method, call.arguments)
        return _json(error="unknown_method")

    def _post(self, arguments: dict[str, Any]) -> web.Response:
        problem = self._channel_problem(arguments) or limit_exceeded(arguments)
        thread = arguments.get("thread_ts")
        if thread and thread not in self.messages:
            problem = "thread_not_found"
        if problem:
            return _json(error=problem)
        moment = int(self._clock.now().timestamp() * 1_000_000) + next(self._counter)
        ts = f"{moment // 1_000_000}.{moment % 1_000_000:06}"
        self.messages[ts] = SlackMessage(
            channel=arguments["channel"],
            ts=ts,
            thread_ts=thread,
            text=arguments.get("text", ""),
            blocks=tuple(arguments.get("blocks") or ()),
            metadata=arguments.get("metadata") or {},
        )
        return _json(channel=arguments["channel"], ts=ts)

    def _update(self, arguments: dict[str, Any]) -> web.Response:
        found = self.messages.get(arguments.get("ts", ""))
        problem = self._channel_problem(arguments) or limit_exceeded(arguments)
        if problem is None and (found is None or found.channel != arguments["channel"]):
            problem = "message_not_found"
        if problem or found is None:
            return _json(error=problem)
        self.messages[found.ts] = replace(
            found,
            text=arguments.get("text", ""),
            blocks=tuple(arguments.get("blocks") or ()),
            metadata=arguments.get("metadata", found.metadata),
            edits=found.edits + 1,
        )
        return _json(channel=found.channel, ts=found.ts)

    def _read(self, method: str, arguments: dict[str, Any]) -> web.Response:
        problem = self._channel_problem(arguments)
        if problem:
            return _json(error=problem)
        thread = arguments.get("ts") if method == "conversations.replies" else None
        rows = [found for found in self.messages.values() if _is_listed(found, arguments, thread)]
        if method == "conversations.history":
            rows.reverse()
        start = int(arguments.get("cursor") or 0)
        size = min(int(arguments.get("limit") or _ROWS_PER_PAGE), _ROWS_PER_PAGE)
        page = rows[start : start + size]
        has_more = start + size < len(rows)
        with_metadata = str(arguments.get("include_all_metadata")).lower() in ("1", "true")
        return _json(
            messages=[
                {"type": "message", "ts": found.ts, "text": found.text}
                | ({"metadata": found.metadata} if with_metadata and found.metadata else {})
                for found in page
            ],
            has_more=has_more,
            response_metadata={"next_cursor": str(start + size) if has_more else ""},
        )

    def _channel_problem(self, arguments: dict[str, Any]) -> str | None:
        channel = arguments.get("channel")
        if channel != CHANNEL:
            return "channel_not_found"
        return "is_archived" if channel in self.archived else None


def limit_exceeded(arguments: Mapping[str, Any]) -> str | None:
    """Return Slack's error where a message breaks one of its documented limits, counted in UTF-16 units."""
    blocks = arguments.get("blocks") or []
    if not blocks and not arguments.get("text"):
        return "no_text"
    if _units(arguments.get("text", "")) > 40_000:
        return "msg_too_long"
    if len(blocks) > 50 or not all(_is_block_valid(block) for block in blocks):
        return "invalid_blocks"
    return "msg_blocks_too_long" if _units(json.dumps(blocks, ensure_ascii=False)) > 13_200 else None


def _is_block_valid(block: Mapping[str, Any]) -> bool:
    text, fields, elements = block.get("text"), block.get("fields", []), block.get("elements", [])
    return (
        (text is None or 1 <= _units(text["text"]) <= 3000)
        and len(fields) <= 10
        and all(1 <= _units(part["text"]) <= 2000 for part in fields)
        and len(elements) <= 10
        and (text is not None or bool(fields) or bool(elements))
    )


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _is_listed(found: SlackMessage, arguments: Mapping[str, Any], thread: str | None) -> bool:
    if found.channel != arguments["channel"] or float(found.ts) < float(arguments.get("oldest") or 0):
        return False
    return found.thread_ts is None if thread is None else thread in (found.ts, found.thread_ts)


async def _arguments(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        return dict(await request.json())
    return dict(request.query) | {key: str(value) for key, value in (await request.post()).items()}


def _json(*, error: str | None = None, **fields: Any) -> web.Response:
    body = {"ok": False, "error": error} if error else {"ok": True, **fields}
    return web.json_response(body, headers={"x-oauth-scopes": SCOPES})
