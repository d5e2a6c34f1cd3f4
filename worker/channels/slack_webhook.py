"""The Slack incoming webhook: messages into one channel by a secret URL, without threads, edits or look-ups.

What was said cannot be edited, so a settle is a message of its own. Slack does not deduplicate here: a message whose
answer was lost becomes a dead letter, never a second message.
"""

import json
from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field

from worker.channels.http_outcomes import retry_after
from worker.channels.http_post import Answer, post
from worker.channels.option_fields import SecretUrl, Template, Timeout
from worker.channels.outcomes import Outcome, Sent
from worker.channels.protocol import Message, SendContext, UnknownPolicy
from worker.channels.reachability import check_reachable
from worker.channels.services import Services
from worker.channels.slack_blocks import render, wording
from worker.channels.slack_outcomes import outcome_of_status

TYPE = "slack-webhook"

# «One message per second per channel», short bursts aside:
# https://docs.slack.dev/apis/web-api/rate-limits (read 2026-11-30).
THROTTLE = timedelta(seconds=1)

# A kept connection that Slack has just closed would lose the message with nobody to ask: each gets its own.
_HEADERS = {"Content-Type": "application/json", "Connection": "close"}


class Options(BaseModel):
    """Messages to a Slack incoming webhook: without edits, threads and look-ups."""

    model_config = ConfigDict(extra="forbid")

    url: SecretUrl = Field(description="The webhook's URL (`https://hooks.slack.com/services/...`).")
    timeout: Timeout = Field(
        default=timedelta(seconds=10),
        description="How long to wait for an answer; after it the message becomes a dead letter.",
    )
    template: Template | None = Field(
        default=None,
        description="A Jinja2 sentence that says a request, over the fields that slack.md lists; its own text is "
        "mrkdwn. Unset: the runtime's fixed summary.",
    )


class SlackWebhookChannel:
    """Posts to one incoming webhook."""

    type = TYPE
    on_unknown = UnknownPolicy.GIVE_UP

    def __init__(self, name: str, options: Options, services: Services) -> None:
        self.recipients = (name,)
        self._url = options.url.get_secret_value()
        self._timeout_seconds = options.timeout.total_seconds()
        self._words = wording(options.template)
        self._services = services

    async def send(self, message: Message, context: SendContext) -> Outcome:
        """Post the message."""
        rendered = render(message, self._words)
        body = json.dumps({"text": rendered.text, "blocks": rendered.blocks, "unfurl_links": False})
        answer = await post(
            self._services.http.session(allow_private=True),
            self._url,
            body.encode(),
            headers=_HEADERS,
            timeout_seconds=self._timeout_seconds,
        )
        if not isinstance(answer, Answer):
            return answer
        if 200 <= answer.status < 300:
            return Sent(None)
        return outcome_of_status(answer.status, retry_after(answer.headers, self._services.clock.now()))

    async def find(self, message: Message, context: SendContext) -> Outcome | None:
        """Return None: an incoming webhook cannot be asked."""
        return None

    async def check(self) -> str:
        """Connect to Slack, without posting anything."""
        return await check_reachable(self._url, allow_private=True)

    async def close(self) -> None:
        """Do nothing: the session is shared."""


def build(name: str, options: Options, services: Services) -> SlackWebhookChannel:
    """Make the destination `name`."""
    return SlackWebhookChannel(name, options, services)
