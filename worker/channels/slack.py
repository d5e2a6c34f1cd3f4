"""The Slack channel: one message a request, reminders in its thread, edited in place when the request settles.

The app's token needs `chat:write`; to find a message whose answer was lost again also `channels:history` (public
channels), `groups:history` (private ones) or `im:history`. Without that scope a lost answer becomes a dead letter,
never a second message. Source: https://docs.slack.dev/reference/methods/conversations.history (read 2026-11-30).
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from config.errors import DependencyError, SettingsError
from worker.channels.option_fields import ApiUrl, Template, Timeout
from worker.channels.outcomes import FailureReason, Outcome, Permanent, Sent, Temporary, Unknown
from worker.channels.protocol import Message, SendContext, SentBefore, UnknownPolicy
from worker.channels.services import Services
from worker.channels.slack_api import Fields, SlackApi
from worker.channels.slack_blocks import render, wording
from worker.channels.wording import Occasion, occasion

TYPE = "slack"

# «One message per second per channel»: https://docs.slack.dev/apis/web-api/rate-limits (read 2026-11-30).
THROTTLE = timedelta(seconds=1)

EVENT_TYPE = "handbell_message"

# How far back a message whose answer was lost is looked for, at least (to its first possible try where that is longer
# ago: it may be a person who has it tried again), and how many pages of history that may take.
LOOK_BACK = timedelta(days=2)
MAX_PAGES = 25
_CLOCK_MARGIN = timedelta(minutes=10)  # Slack dates messages by its own clock
FIND_SECONDS = 30.0

_CHANNEL_ID = re.compile(r"[CGD][A-Z0-9]+", re.ASCII)
_HISTORY_SCOPES = frozenset({"channels:history", "groups:history", "im:history", "mpim:history"})
_IN_THREAD = frozenset({Occasion.REMINDER, Occasion.ESCALATION})


def check_channel_id(value: str) -> str:
    """Return a channel's id; raises ValueError for a name."""
    if _CHANNEL_ID.fullmatch(value) is None:
        raise ValueError("must be the channel's id, such as C0123456789, not its name")
    return value


ChannelId = Annotated[str, AfterValidator(check_channel_id)]


class Options(BaseModel):
    """One message in a Slack channel by an app's token, edited when the request settles."""

    model_config = ConfigDict(extra="forbid")

    token: SecretStr = Field(
        min_length=1, description="The app's bot token (`xoxb-...`), with the scopes that slack.md names."
    )
    channel: ChannelId = Field(
        description="The channel's id, such as C0123456789 (not its name: names change, and history needs the id)."
    )
    api_url: ApiUrl = Field(
        default="https://slack.com/api/", description="Where the Web API is; `http://` is taken for this machine only."
    )
    broadcast_reminders: bool = Field(
        default=False, description="Whether a reminder in the thread is shown in the channel too."
    )
    timeout: Timeout = Field(
        default=timedelta(seconds=10),
        description="How long to wait for an answer; after it the message is looked for.",
    )
    template: Template | None = Field(
        default=None,
        description="A Jinja2 sentence that says a request, over the fields that slack.md lists; its own text is "
        "mrkdwn. Unset: the runtime's fixed summary.",
    )


class SlackChannel:
    """Posts to one channel of one workspace."""

    type = TYPE
    on_unknown = UnknownPolicy.LOOK_UP

    def __init__(self, name: str, options: Options, services: Services) -> None:
        self.recipients = (name,)
        self._channel = options.channel
        self._is_broadcast = options.broadcast_reminders
        self._words = wording(options.template)
        self._timeout_seconds = options.timeout.total_seconds()
        self._api = SlackApi(
            options.token.get_secret_value(),
            options.api_url,
            timeout_seconds=self._timeout_seconds,
            services=services,
        )

    async def send(self, message: Message, context: SendContext) -> Outcome:
        """Post the message, or edit what was sent before where it settles."""
        if occasion(message)[0] is Occasion.SETTLE:
            return await self._settle(message, context.sent_before)
        thread = _thread_of(message, context)
        outcome = await self._post(message, thread)
        if thread and outcome == Permanent(FailureReason.TARGET_GONE):
            return await self._post(message, None)  # somebody deleted the thread, the request waits on
        return outcome

    async def find(self, message: Message, context: SendContext) -> Outcome | None:
        """Look for a message with this key in the thread it belongs to, or in the channel's history.

        Temporary where the history could not be read, or not to its end.
        """
        if occasion(message)[0] is Occasion.SETTLE:
            return None  # edits are repeated without harm
        thread = _thread_of(message, context)
        try:
            async with asyncio.timeout(FIND_SECONDS):
                found = await self._find(message.key, thread, context)
                return found if found or not thread else await self._find(message.key, None, context)
        except TimeoutError:
            return Temporary(FailureReason.TIMED_OUT)

    async def check(self) -> str:
        """Ask Slack who the token belongs to, and whether it may read the channel's history."""
        answer = await self._api.who_am_i()
        if isinstance(answer, Permanent):
            raise SettingsError(f"Slack refuses the token ({answer.reason}): check token and api_url")
        if isinstance(answer, Temporary | Unknown):
            raise DependencyError(f"Slack cannot be asked ({answer.reason})")
        assert not isinstance(answer, Sent), "the API knows no such answer"
        return f"{self._channel} as {answer.get('user')} of {answer.get('team')}{_scope_warning(answer.get('scopes'))}"

    async def close(self) -> None:
        """Do nothing: the session is shared."""

    async def _post(self, message: Message, thread: str | None) -> Outcome:
        answer = await self._api.post(
            self._channel, thread, is_broadcast=self._is_broadcast, **self._content(message, message.key)
        )
        return _sent(answer)

    async def _settle(self, message: Message, sent_before: Sequence[SentBefore]) -> Outcome:
        """Edit every message of the request, the opening first; a try that failed half-way begins again."""
        edited: Sent | None = None
        try:
            async with asyncio.timeout(self._timeout_seconds * 2):
                for sent in sent_before:
                    outcome = await self._edit(message, sent)
                    if isinstance(outcome, Sent):
                        edited = edited or outcome
                    elif outcome != Permanent(FailureReason.TARGET_GONE):
                        return outcome
        except TimeoutError:
            return Temporary(FailureReason.TIMED_OUT)
        return edited or Permanent(FailureReason.TARGET_GONE)

    async def _edit(self, message: Message, sent: SentBefore) -> Outcome:
        channel, _, ts = (sent.provider_ref or "").partition(":")
        if not ts:
            return Permanent(FailureReason.TARGET_GONE)
        outcome = _sent(await self._api.update(channel, ts, **self._content(message, sent.key)))
        # An edit may be repeated: where its fate is unknown it is simply tried again.
        return Temporary(outcome.reason) if isinstance(outcome, Unknown) else outcome

    async def _find(self, key: str, thread: str | None, context: SendContext) -> Outcome | None:
        since = context.now - LOOK_BACK
        oldest = f"{(min(since, context.since - _CLOCK_MARGIN) if context.since else since).timestamp():.6f}"
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._api.history(self._channel, thread, oldest, cursor)
            if isinstance(page, Outcome):
                return _not_asked(page, thread)
            for row in page.get("messages") or ():
                if _key_of(row) == key:
                    return Sent(f"{self._channel}:{row.get('ts')}")
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or None
            if cursor is None:
                return None
        return Temporary(FailureReason.TIMED_OUT)

    def _content(self, message: Message, key: str) -> dict[str, Any]:
        metadata = {"event_type": EVENT_TYPE, "event_payload": {"key": key}}
        return {**asdict(render(message, self._words)), "metadata": metadata}


def build(name: str, options: Options, services: Services) -> SlackChannel:
    """Make the destination `name`."""
    return SlackChannel(name, options, services)


def _thread_of(message: Message, context: SendContext) -> str | None:
    """Return the opening's timestamp where the message belongs into its thread."""
    if occasion(message)[0] not in _IN_THREAD or not context.sent_before:
        return None
    return (context.sent_before[0].provider_ref or "").partition(":")[2] or None


def _sent(answer: Fields | Outcome) -> Outcome:
    if isinstance(answer, Outcome):
        return answer
    channel, ts = answer.get("channel"), answer.get("ts")
    return Sent(f"{channel}:{ts}") if channel and ts else Unknown(FailureReason.BAD_ANSWER)


def _not_asked(outcome: Outcome, thread: str | None) -> Outcome | None:
    """Return what a history that could not be read means: a thread that is gone holds nothing."""
    if isinstance(outcome, Temporary):
        return outcome
    assert not isinstance(outcome, Sent), "the API knows no such answer"
    is_gone = thread is not None and outcome.reason is FailureReason.TARGET_GONE
    return None if is_gone else Temporary(outcome.reason)


def _key_of(row: Any) -> str | None:
    metadata = row.get("metadata") if isinstance(row, dict) else None
    if not isinstance(metadata, dict) or metadata.get("event_type") != EVENT_TYPE:
        return None
    payload = metadata.get("event_payload")
    key = payload.get("key") if isinstance(payload, dict) else None
    return key if isinstance(key, str) else None


def _scope_warning(scopes: Any) -> str:
    granted = {scope.strip() for scope in scopes.split(",")} if isinstance(scopes, str) else None
    if granted is None or granted & _HISTORY_SCOPES:
        return ""
    return "; without a history scope a lost answer becomes a dead letter"
