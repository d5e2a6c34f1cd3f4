"""The source that pushes: an agent hands its observations to our HTTP receiver (worker/web).

It cannot be asked, so its last word counts for `fresh_for`; with `ask_url` the agent's own protected server answers
about one exact reference, which the agent itself handed to us (`GET /api/human-attention/{attention_id}`).
"""

from datetime import timedelta
from typing import Literal

import structlog
from aiohttp import ClientSession
from pydantic import BaseModel, ValidationError

from config.clock import Clock
from reconciler.errors import SourceRefused, SourceUnavailable
from reconciler.references import Observation, Reference, cayu_attention_id
from reconciler.sources.handoff_options import Options
from reconciler.sources.http_client import HttpClient
from reconciler.sources.services import SourceServices
from reconciler.states import AttentionState, Evidence, Kind

__all__ = ["TYPE", "AskingHandoffSource", "HandoffSource", "Options", "build"]

TYPE = "handoff"

log = structlog.get_logger()

_ASK_WITHIN = timedelta(seconds=10)


def build(namespace: str, options: Options, services: SourceServices) -> "HandoffSource | AskingHandoffSource":
    """Make the source of `namespace`: one that can be asked where `ask_url` is set, else one that only pushes."""
    if options.ask_url is None:
        return HandoffSource(options)
    assert services.http is not None, "the wiring opens an HTTP session for sources"
    return AskingHandoffSource(namespace, options, services.http, services.clock)


class HandoffSource:
    """Push only. It has no store of its own to tell apart, and nothing here to check or close."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.fresh_for: timedelta = options.fresh_for

    async def identity(self) -> str | None:
        """Return None: the protocol names no store."""
        return None

    async def check(self) -> None:
        """Return: whether the agent pushes is seen by its reports, not by asking."""

    async def close(self) -> None:
        """Return: nothing is held."""


class _Answer(BaseModel):
    attention_id: str
    state: AttentionState
    reason: Evidence


class AskingHandoffSource:
    """Pushes, and can be asked about one exact reference."""

    def __init__(self, namespace: str, options: Options, http: ClientSession, clock: Clock) -> None:
        assert options.ask_url is not None, "without it there is nobody to ask"
        self.options = options
        self._namespace = namespace
        self._place = f"namespace {namespace!r}: the server of ask_url"
        token = options.ask_token.get_secret_value() if options.ask_token is not None else None
        self._client = HttpClient(
            http,
            clock,
            url=options.ask_url,
            token=token,
            place=self._place,
            token_key="ask_token",  # noqa: S106  # a key's name
            within=_ASK_WITHIN,
        )
        self._clock = clock

    async def identity(self) -> str | None:
        """Return None: the protocol names no store."""
        return None

    async def check(self) -> None:
        """Ask about a request that cannot exist: it tells whether the server answers, and answers us.

        Raises SourceUnavailable or SourceRefused, one line each, without the URL.
        """
        nobody = Reference("", "handbell-check", "handbell-check", Kind.USER_INPUT, "handbell-check", source_sequence=1)
        await self._ask(nobody, cayu_attention_id(nobody))

    async def close(self) -> None:
        """Return: the HTTP session belongs to the wiring."""

    async def observe(self, reference: Reference) -> Observation:
        """Return what the agent's server says of the reference now; whatever keeps it from saying is `unavailable`."""
        asked_at = self._clock.now()
        try:
            answer = await self._ask(reference, reference.attention_id)
        except (SourceUnavailable, SourceRefused) as error:
            log.warning("source.unanswered", namespace=self._namespace, reason=error.reason)
            return Observation(reference, AttentionState.UNAVAILABLE, Evidence.STORE_UNAVAILABLE, asked_at)
        return Observation(reference, answer.state, answer.reason, asked_at)

    async def _ask(self, reference: Reference, attention_id: str) -> _Answer:
        answer = await self._client.get(f"/api/human-attention/{attention_id}", _query(reference))
        try:
            said = _Answer.model_validate(answer.body)
        except ValidationError:
            raise SourceUnavailable("bad_answer", f"{self._place} answered what the route does not have") from None
        if said.attention_id != attention_id:
            raise SourceUnavailable("bad_answer", f"{self._place} answered about another request")
        return said


def _query(reference: Reference) -> dict[str, str]:
    fields: dict[Literal["round_id", "tool_call_id", "source_sequence"], str | int | None] = {
        "round_id": reference.round_id,
        "tool_call_id": reference.tool_call_id,
        "source_sequence": reference.source_sequence,
    }
    return {
        "session_id": reference.session_id,
        "session_instance_id": reference.session_instance_id,
        "kind": reference.kind.value,
        "action_id": reference.action_id,
        **{name: str(value) for name, value in fields.items() if value is not None},
    }
