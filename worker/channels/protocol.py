"""What a channel is: one way of telling people, with its recipients, its rendering and its honest outcomes.

A channel returns its outcome; an exception out of it is a bug (recorded as `unexpected`, retried, bounded).
Each channel module exports `TYPE` (its name in the settings), `Options` (a pydantic model of its table) and
`build(name, options, services) -> Channel`. `worker.channels.testing.conformance` is what each is held to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from reconciler.states import AttentionState, Kind
from worker.channels.outcomes import Outcome


class UnknownPolicy(StrEnum):
    """What may be done after an unknown outcome, by what the receiver can do."""

    LOOK_UP = "look_up"  # the provider can be asked whether it has the message (Slack)
    RESEND = "resend"  # the receiver deduplicates by the message's id (webhook)
    RESEND_ONCE = "resend_once"  # the same id once more at most (email)
    GIVE_UP = "give_up"  # neither: a dead letter, never a blind repeat


@dataclass(frozen=True, slots=True)
class Item:
    """One request as a message shows it: content-free, untrusted where a person chose it, not yet escaped."""

    namespace: str
    attention_id: str
    kind: Kind
    summary: str
    state: AttentionState
    reason: str
    agent_name: str | None
    requester: str | None
    link: str | None
    first_seen_at: datetime
    state_changed_at: datetime


@dataclass(frozen=True, slots=True)
class Message:
    """What one recipient is to be told now.

    `key` is 32 lower-case hex digits, constant over all tries of the delivery and different for every other:
    the Message-ID, the webhook id and the Slack metadata are made from it. `purpose` is `open`, `reminder:N`,
    `escalation:N`, `settle` or `digest:N`. `footer` says why the recipient is told, where configured.
    """

    key: str
    purpose: str
    items: Sequence[Item]
    footer: str | None = None

    @property
    def item(self) -> Item:
        """Return the request of a message that is about one (all but digests)."""
        return self.items[0]


@dataclass(frozen=True, slots=True)
class SentBefore:
    """A message about the same request that this recipient of this destination already has."""

    key: str
    purpose: str
    provider_ref: str | None
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class SendContext:
    """What a try needs besides the message.

    `sent_before` is oldest first; the first entry is the one to answer or to edit. `attempt` counts from 1. No try of
    this message was made before `since`.
    """

    recipient: str
    attempt: int
    now: datetime
    sent_before: Sequence[SentBefore] = ()
    since: datetime | None = None


class Channel(Protocol):
    """One configured destination.

    `recipients` are stable names (a mail address; the destination's own name where the provider fans out): one
    delivery each. `on_unknown` says what the engine may do after an unknown outcome.
    """

    type: str
    recipients: tuple[str, ...]
    on_unknown: UnknownPolicy

    async def send(self, message: Message, context: SendContext) -> Outcome:
        """Tell the recipient once; a settle edits, answers or follows what `sent_before` names."""
        ...

    async def find(self, message: Message, context: SendContext) -> Outcome | None:
        """Ask the provider for an earlier try of this very message (only LOOK_UP): Sent, None for
        «it is not there», or Temporary where it could not be asked; other channels return None."""
        ...

    async def check(self) -> str:
        """Try the provider without telling anybody anything; return one line of what was found, raise
        config.errors.ConfigError (one line) where it does not work."""
        ...

    async def close(self) -> None:
        """Let go of connections; safe to call twice."""
        ...
