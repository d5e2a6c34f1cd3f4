"""The JSON events of the webhook channel, as docs/webhook.md describes them: content-free, bounded in size."""

import json
from datetime import UTC, datetime
from typing import Any

from worker.channels import text
from worker.channels.protocol import Item, Message
from worker.channels.wording import Occasion, occasion

# What the specification recommends at most for one payload (read 2026-11-30):
# https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#payload-structure
MAX_BODY_BYTES = 20_000

TYPES = {
    Occasion.OPEN: "handbell.attention.opened",
    Occasion.REMINDER: "handbell.attention.reminder",
    Occasion.ESCALATION: "handbell.attention.escalated",
    Occasion.SETTLE: "handbell.attention.settled",
    Occasion.DIGEST: "handbell.digest",
    Occasion.NOTICE: "handbell.notice",
}

# A settle about a digest: the states of its requests, as they are now.
DIGEST_SETTLED = "handbell.digest.settled"


def event_id(message: Message) -> str:
    """Return the event's id, the same over all tries: receivers deduplicate by it."""
    return f"msg_{message.key}"


def body(message: Message, now: datetime) -> str:
    """Return the event as JSON of at most `MAX_BODY_BYTES`; requests that do not fit are counted, not listed."""
    which, number = occasion(message)
    event: dict[str, Any] = {
        "type": _type(message, which),
        "timestamp": _instant(_happened_at(message, which, now)),
        "data": {
            "purpose": text.name(message.purpose),
            "number": int(number) if number.isascii() and number.isdecimal() else None,
            "footer": text.cut(text.one_line(message.footer), 300) if message.footer else None,
        },
    }
    if len(message.items) == 1:
        event["data"] |= _fields(message.item)
        return _json(event)
    return _with_items(event, message)


def _with_items(event: dict[str, Any], message: Message) -> str:
    data = event["data"] | {"items": [], "items_omitted": len(message.items)}
    room = MAX_BODY_BYTES - len(_json(event | {"data": data}).encode())
    for item in message.items:
        fields = _fields(item)
        room -= len(_json(fields).encode()) + 1
        if room < 0:
            break
        data["items"].append(fields)
    data["items_omitted"] = len(message.items) - len(data["items"])
    return _json(event | {"data": data})


def _type(message: Message, which: Occasion) -> str:
    return DIGEST_SETTLED if which is Occasion.SETTLE and len(message.items) > 1 else TYPES[which]


def _happened_at(message: Message, which: Occasion, now: datetime) -> datetime:
    """Return when what the event tells of happened; a reminder happens now."""
    if which is Occasion.OPEN:
        return message.item.first_seen_at
    if which is Occasion.SETTLE:
        return max(item.state_changed_at for item in message.items)
    return now


def _fields(item: Item) -> dict[str, Any]:
    return {
        "namespace": text.name(item.namespace),
        "attention_id": text.name(item.attention_id),
        "kind": item.kind.value,
        "summary": text.name(item.summary),
        "state": item.state.value,
        "reason": text.name(item.reason),
        "agent_name": _optional(item.agent_name),
        "requester": _optional(item.requester),
        "link": text.web_link(item.link),
        "first_seen_at": _instant(item.first_seen_at),
        "state_changed_at": _instant(item.state_changed_at),
    }


def _optional(value: str | None) -> str | None:
    return text.name(value) or None if value is not None else None


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
