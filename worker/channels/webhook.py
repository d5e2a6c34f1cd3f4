"""The webhook channel: a signed JSON event (Standard Webhooks) under an id that stays the same over all tries.

Source of the signature scheme: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
(read 2026-11-30). The events are described in docs/webhook.md.
"""

import base64
import binascii
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr
from standardwebhooks import Webhook

from worker.channels import webhook_event
from worker.channels.http_outcomes import retry_after
from worker.channels.http_post import Answer, post
from worker.channels.option_fields import SecretUrl, Timeout
from worker.channels.outcomes import Outcome, Sent
from worker.channels.protocol import Message, SendContext, UnknownPolicy
from worker.channels.reachability import check_reachable
from worker.channels.services import Services
from worker.channels.webhook_outcomes import outcome_of_status

TYPE = "webhook"

# The specification wants 24 to 64 bytes; secrets of other systems that are shorter than this are not safe.
MIN_SECRET_BYTES = 16
_SECRET_PREFIX = "whsec_"  # noqa: S105  # the mark of a secret, not one


def check_secret(value: SecretStr) -> SecretStr:
    """Return a signing secret unchanged; raises ValueError without repeating it."""
    encoded = value.get_secret_value().removeprefix(_SECRET_PREFIX)
    try:
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError('must be "whsec_" and base64') from None
    if len(decoded) < MIN_SECRET_BYTES:
        raise ValueError(f"must hold at least {MIN_SECRET_BYTES} bytes")
    return value


SigningSecret = Annotated[SecretStr, AfterValidator(check_secret)]


class Options(BaseModel):
    """Signed JSON events to one URL; webhook.md describes them."""

    model_config = ConfigDict(extra="forbid")

    url: SecretUrl = Field(description="Where to post; treated as a secret.")
    secrets: list[SigningSecret] = Field(
        min_length=1,
        description="Signing secrets, `whsec_` and base64 of at least 16 bytes; each event is signed with all of them, "
        "so that one can be exchanged without a gap.",
    )
    allow_private: bool = Field(
        default=False,
        description="Whether the URL may lead to private, loopback or link-local addresses.",
    )
    timeout: Timeout = Field(
        default=timedelta(seconds=10),
        description="How long to wait for the answer in all; a further try under the same id follows where none came.",
    )


class WebhookChannel:
    """Posts events to one receiver."""

    type = TYPE
    on_unknown = UnknownPolicy.RESEND

    def __init__(self, name: str, options: Options, services: Services) -> None:
        self.recipients = (name,)
        self._url = options.url.get_secret_value()
        self._signers = [Webhook(secret.get_secret_value()) for secret in options.secrets]
        self._allow_private = options.allow_private
        self._timeout_seconds = options.timeout.total_seconds()
        self._services = services

    async def send(self, message: Message, context: SendContext) -> Outcome:
        """Post the event; a settle is an event of its own."""
        event_id = webhook_event.event_id(message)
        body = webhook_event.body(message, context.now)
        answer = await post(
            self._services.http.session(allow_private=self._allow_private),
            self._url,
            body.encode(),
            headers={"Content-Type": "application/json", **self._signed(event_id, body)},
            timeout_seconds=self._timeout_seconds,
        )
        if not isinstance(answer, Answer):
            return answer
        failed = outcome_of_status(answer.status, retry_after(answer.headers, self._services.clock.now()))
        return failed or Sent(event_id)

    async def find(self, message: Message, context: SendContext) -> Outcome | None:
        """Return None: a receiver cannot be asked, but it knows an event by its id."""
        return None

    async def check(self) -> str:
        """Connect to the receiver, without posting anything."""
        return await check_reachable(self._url, allow_private=self._allow_private)

    async def close(self) -> None:
        """Do nothing: the session is shared."""

    def _signed(self, event_id: str, body: str) -> dict[str, str]:
        now = self._services.clock.now()
        signatures: Sequence[str] = [signer.sign(event_id, now, body) for signer in self._signers]
        return {
            "webhook-id": event_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(signatures),
        }


def build(name: str, options: Options, services: Services) -> WebhookChannel:
    """Make the destination `name`."""
    return WebhookChannel(name, options, services)
