"""The calls of Slack's Web API that Handbell makes: slack_sdk's client, with its retries off, made to tell outcomes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from worker.channels.http_outcomes import EXCHANGE_ERRORS, outcome_of_error, retry_after
from worker.channels.outcomes import FailureReason, Outcome, Unknown
from worker.channels.services import Services
from worker.channels.slack_outcomes import outcome_of_answer

# Rows asked for at once: https://docs.slack.dev/reference/methods/conversations.history (read 2026-11-30)
# recommends at most 200.
PAGE_ROWS = 200

Fields = Mapping[str, Any]


class SlackApi:
    """Calls one workspace; each method returns the answer's fields, or the outcome where there are none."""

    def __init__(self, token: str, api_url: str, *, timeout_seconds: float, services: Services) -> None:
        self._token = token
        self._api_url = api_url
        self._timeout_seconds = timeout_seconds
        self._services = services
        self._logger = logging.getLogger(f"{__name__}.client")
        self._logger.setLevel(logging.CRITICAL)  # the library's debug lines hold whole messages

    async def post(
        self, channel: str, thread_ts: str | None, *, is_broadcast: bool, **content: Any
    ) -> Fields | Outcome:
        """Post a message, in a thread where one is given; nothing in it is linked or unfurled by Slack."""
        return await self._call(
            lambda client: client.chat_postMessage(
                channel=channel,
                thread_ts=thread_ts,
                reply_broadcast=True if thread_ts and is_broadcast else None,
                unfurl_links=False,
                unfurl_media=False,
                link_names=False,
                parse="none",
                **content,
            )
        )

    async def update(self, channel: str, ts: str, **content: Any) -> Fields | Outcome:
        """Replace the content of a message."""
        return await self._call(
            lambda client: client.chat_update(channel=channel, ts=ts, link_names=False, parse="none", **content)
        )

    async def history(self, channel: str, thread_ts: str | None, oldest: str, cursor: str | None) -> Fields | Outcome:
        """Read a page of the channel, newest first, or of one thread, with the metadata of its messages."""
        if thread_ts is not None:
            return await self._call(
                lambda client: client.conversations_replies(
                    channel=channel, ts=thread_ts, cursor=cursor, include_all_metadata=True, limit=PAGE_ROWS
                )
            )
        return await self._call(
            lambda client: client.conversations_history(
                channel=channel, cursor=cursor, oldest=oldest, include_all_metadata=True, limit=PAGE_ROWS
            )
        )

    async def who_am_i(self) -> Fields | Outcome:
        """Ask what the token is good for; adds `scopes`, the token's own, where Slack names them."""
        return await self._call(lambda client: client.auth_test(), "x-oauth-scopes")

    async def _call(
        self, call: Callable[[AsyncWebClient], Awaitable[AsyncSlackResponse]], scopes_header: str | None = None
    ) -> Fields | Outcome:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                response = await call(self._client())
        except SlackApiError as error:
            return self._outcome_of(error.response)
        except EXCHANGE_ERRORS as error:
            return outcome_of_error(error)
        except (AttributeError, TypeError, ValueError):  # the library, over a body that is no Slack answer
            return Unknown(FailureReason.BAD_ANSWER)
        if not isinstance(response.data, dict):
            return Unknown(FailureReason.BAD_ANSWER)
        scopes = {"scopes": response.headers.get(scopes_header)} if scopes_header else {}
        return {**response.data, **scopes}

    def _outcome_of(self, response: Any) -> Outcome:
        data = getattr(response, "data", None)
        status = getattr(response, "status_code", None) or getattr(response, "status", None) or 0
        error = data.get("error") if isinstance(data, dict) else None
        wait = retry_after(response.headers or {}, self._services.clock.now())
        return outcome_of_answer(int(status), error if isinstance(error, str) else None, wait)

    def _client(self) -> AsyncWebClient:
        client = AsyncWebClient(
            token=self._token,
            base_url=self._api_url,
            session=self._services.http.session(allow_private=True),
            retry_handlers=[],
            logger=self._logger,
        )
        client.proxy = None  # the client reads HTTPS_PROXY by itself; no proxy from outside is trusted
        return client
