"""Messages to try a channel with: ordinary ones, and the hostile ones from the field."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.states import SUMMARIES, AttentionState, Evidence, Kind
from worker.channels.protocol import Item, Message, SendContext, SentBefore

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)

# Names that ping everybody, forge a link, add a header, close a tag, turn the reading direction, or never end.
HOSTILE_NAMES = (
    "<!channel> <https://evil.example|Approve>",
    "<!here> <@U0123456> <#C0123456> @channel",
    "billing\r\nBcc: victim@example.com\r\n\r\nbody",
    "billing\nSubject: urgent\x00\x1b[31m",
    '"><script>alert(1)</script><a href="https://evil.example">',
    "&lt;!channel&gt; &amp; &#60;",
    "{{ 7 * 7 }} {% for x in y %} ${7*7} %s %(name)s",
    "\u202egnp.exe \u2066 \ufeff\u200b",
    "lone surrogate \ud800 here",
    "=?utf-8?q?=0D=0ABcc:_victim@example.com?=",
    "e\u0301" * 4000,
    "👩‍👩‍👧‍👦" * 2000,
    "&" * 30000,
    "<" * 30000,
    "",
    "\r\n",
)


def item(**changes: Any) -> Item:
    """Return a request that waits, with `changes`."""
    usual = Item(
        namespace="prod",
        attention_id="attention_" + "0123456789abcdef" * 4,
        kind=Kind.TOOL_APPROVAL,
        summary=SUMMARIES[Kind.TOOL_APPROVAL],
        state=AttentionState.ACTIVE,
        reason=Evidence.CURRENT_ACTION.value,
        agent_name="billing",
        requester="dana",
        link="https://agents.example.com/sessions/s-1?tab=a&x=1",
        first_seen_at=NOW - timedelta(minutes=5),
        state_changed_at=NOW - timedelta(minutes=5),
    )
    return replace(usual, **changes)


def settled(state: AttentionState = AttentionState.RESOLVED, **changes: Any) -> Item:
    """Return a request that is over."""
    return item(state=state, reason=Evidence.DURABLE_CLOSURE.value, state_changed_at=NOW, **changes)


def message(*items: Item, purpose: str = "open", key: str = "a" * 32, footer: str | None = None) -> Message:
    """Return a message about `items`, or about one that waits."""
    return Message(key=key, purpose=purpose, items=items or (item(),), footer=footer)


def context(recipient: str, *, attempt: int = 1, sent_before: tuple[SentBefore, ...] = ()) -> SendContext:
    """Return what a first try needs."""
    return SendContext(recipient=recipient, attempt=attempt, now=NOW, sent_before=sent_before)


def sent(provider_ref: str | None, *, purpose: str = "open", key: str = "a" * 32) -> SentBefore:
    """Return an earlier message to the same recipient."""
    return SentBefore(key=key, purpose=purpose, provider_ref=provider_ref, sent_at=NOW - timedelta(minutes=4))
