"""Speaks `cayu.human-attention-handoff/v1` as a sender does, for trying out a receiver; invents requests of its own."""

import asyncio
import json
import secrets
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout

from reconciler.references import Reference, cayu_attention_id
from reconciler.states import SUMMARIES, Kind

PROTOCOL = "cayu.human-attention-handoff/v1"
MARK = "handoff-check"

# What the client of Cayu 0.15 waits (HumanAttentionReceiver, timeout_seconds).
_TIMEOUT = ClientTimeout(total=10)
_MAX_PAGES = 10_000
_ATTEMPTS_WHEN_LIMITED = 20


class Wrong(Exception):  # noqa: N818  # states a fact
    """The receiver did not do what the protocol asks; the text says what it did instead."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, and the JSON value that came with it (None where it was none)."""

    status: int
    value: Any

    @property
    def code(self) -> str | None:
        """Return the code of a refusal, None where there is none."""
        detail = self.value.get("detail") if isinstance(self.value, dict) else None
        code = detail.get("code") if isinstance(detail, dict) else None
        return code if isinstance(code, str) else None

    def accepted(self) -> dict[str, Any]:
        """Return the object of a 2xx answer; raises Wrong otherwise."""
        if not 200 <= self.status < 300:
            raise Wrong(f"answered {self.status}{f' {self.code}' if self.code else ''} where it should accept")
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise Wrong("answered something else than a JSON object")
        return self.value

    def refused(self, *statuses: int) -> None:
        """Return where the answer is a refusal (of these statuses, if any are named); raises Wrong otherwise."""
        expected = self.status in statuses if statuses else 400 <= self.status < 500
        if not expected:
            wanted = " or ".join(str(status) for status in statuses) or "a 4xx status"
            raise Wrong(f"answered {self.status} where it should refuse with {wanted}")
        if self.code is None:
            raise Wrong(f"refused with {self.status} but without detail.code in a JSON object")


class Sender:
    """Calls one receiver. Every request it invents is marked, remembered in `opened`, and can be settled again."""

    def __init__(self, http: ClientSession, url: str, token: str) -> None:
        self._http = http
        self._url = url.rstrip("/")
        self.token = token
        self.session_id = f"{MARK}:{secrets.token_hex(8)}"
        self.opened: dict[str, dict[str, Any]] = {}

    def invent(self, kind: Kind = Kind.USER_INPUT) -> dict[str, Any]:
        """Return a new reference with its true identity."""
        action_id = f"{MARK}:{secrets.token_hex(8)}"
        fields = Reference("", self.session_id, self.session_id, kind, action_id, None, "call", 1)
        return {
            "attention_id": cayu_attention_id(fields),
            "session_id": fields.session_id,
            "session_instance_id": fields.session_instance_id,
            "kind": kind.value,
            "action_id": action_id,
            "round_id": None,
            "tool_call_id": "call",
            "source_sequence": 1,
        }

    async def call(self, method: str, path: str, *, token: str | None = None, **options: Any) -> Answer:
        """Make one call; a 429 is waited out. Raises Wrong where no answer comes."""
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"} if token != "" else {}
        for _ in range(_ATTEMPTS_WHEN_LIMITED):
            try:
                async with self._http.request(
                    method,
                    f"{self._url}/{path}",
                    headers=headers,
                    timeout=_TIMEOUT,
                    allow_redirects=False,
                    **options,
                ) as response:
                    answer = Answer(response.status, _json(await response.read()))
            except (ClientError, OSError, TimeoutError) as error:
                raise Wrong(f"did not answer ({type(error).__name__})") from None
            if answer.status != 429:
                return answer
            await asyncio.sleep(0.5)
        raise Wrong("went on answering 429")

    async def observe(self, *observations: dict[str, Any], **extra: Any) -> Answer:
        """Send observations; the requests that they open are remembered, unless the batch is refused."""
        shown = {item["reference"]["attention_id"]: item["reference"] for item in observations if "summary" in item}
        new = shown.keys() - self.opened.keys()
        self.opened |= shown
        answer = await self.call("POST", "observations", json=body(*observations, **extra))
        if 400 <= answer.status < 500:
            for attention_id in new:
                del self.opened[attention_id]
        return answer

    async def listed(self) -> list[str]:
        """Return the attention ids of all open requests of our session, over every page; raises Wrong."""
        found: list[str] = []
        after: str | None = None
        for _ in range(_MAX_PAGES):
            params = {"limit": "50", "session_id": self.session_id} | ({"after": after} if after else {})
            page = (await self.call("GET", "references", params=params)).accepted()
            items, after_next = page.get("items", []), page.get("next_after")
            if not isinstance(items, list):
                raise Wrong("`items` is not a list")
            found += [str(item.get("attention_id")) for item in items if isinstance(item, dict)]
            if after_next is None:
                return found
            if not isinstance(after_next, str) or after_next == after:
                raise Wrong("`next_after` is neither null nor a new text")
            after = after_next
        raise Wrong("the pages of references do not end")

    def scope(self, *, complete: bool = True) -> dict[str, Any]:
        """Return the scope that says: this is all of our session."""
        return {"session_scope": {"complete": complete, "session_id": self.session_id}}


def active(reference: dict[str, Any]) -> dict[str, Any]:
    """Return what a sink or a scan says of an open request."""
    return {
        "agent_name": MARK,
        "reason": "current_action",
        "reference": reference,
        "requester_ref": None,
        "state": "active",
        "summary": SUMMARIES[Kind(reference["kind"])],
    }


def verified(reference: dict[str, Any], state: str, reason: str) -> dict[str, Any]:
    """Return what the answer to a verify says."""
    return {"reason": reason, "reference": reference, "state": state}


def body(*observations: dict[str, Any], **extra: Any) -> dict[str, Any]:
    """Return the body of POST observations."""
    return {"observations": list(observations), "protocol": PROTOCOL, "runtime_version": "0.15.0", **extra}


def _json(content: bytes) -> Any:
    try:
        return json.loads(content) if content else None
    except ValueError:
        return "not JSON"
