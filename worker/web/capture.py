"""The door for pauses that an agent's process hands over (`handbell_emit.capture`): `POST /capture/{namespace}`.

The ledger is asked about the pause first, so that a request which no sweep has seen yet is told of at once; then its
token is kept, sealed. The answer is given after both commits. What is posted never decides a state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from config.clock import Clock
from reconciler.namespaces import Namespaces
from reconciler.notifications import Notifications
from reconciler.pause_store.captures import Capture, CaptureDiffersError, CaptureStore
from reconciler.pause_store.tables import JTI_CHARS, NAME_CHARS
from reconciler.reasons import Door
from reconciler.sources.pauses import PausesSource
from reconciler.states import AttentionState
from worker.answers.errors import KeysetUnavailableError
from worker.web.guard import Limits, answer, body_of
from worker.web.models import storable
from worker.web.rates import RateLimit
from worker.web.refusals import Code, Refused
from worker.web.tokens import Tokens

MAX_ENVELOPE_CHARS = 16_384
MAX_CLAIM_CHARS = 2_048

Token = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ENVELOPE_CHARS, pattern=r"^[\x21-\x7e]+$")]
Jti = Annotated[str, StringConstraints(min_length=1, max_length=JTI_CHARS), AfterValidator(storable)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_CHARS), AfterValidator(storable)]
Claim = Annotated[str, StringConstraints(max_length=MAX_CLAIM_CHARS), AfterValidator(storable)]


class CaptureBody(BaseModel):
    """What travels: a pause, its token, and where it belongs."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    protocol: Literal["handbell.capture/v1"]
    jti: Jti
    name: Name
    envelope: Token = Field(repr=False)
    session_id: Claim
    run_id: Claim
    root_run_id: Claim
    call_id: Claim
    thread_id: Claim
    checkpoint_id: Claim
    resumable: bool

    def capture(self) -> Capture:
        """Return it as it is kept."""
        said = self.model_dump(exclude={"protocol", "resumable"})
        return Capture(**said, is_resumable=self.resumable)


class CaptureReceiver:
    """Takes the captures of one namespace."""

    def __init__(
        self,
        namespace: str,
        source: PausesSource,
        store: CaptureStore,
        notifications: Notifications,
        namespaces: Namespaces,
        clock: Clock,
    ) -> None:
        self._namespace = namespace
        self._source = source
        self._store = store
        self._notifications = notifications
        self._namespaces = namespaces
        self._clock = clock

    async def take(self, body: CaptureBody) -> dict[str, Any]:
        """Commit a capture and return what is known of its pause; may be repeated. Raises Refused, SQLAlchemy's errors.

        A ledger that cannot be read now, or does not show the pause yet, keeps nobody waiting: a head pass is made
        due instead.
        """
        reference = self._source.reference(body.jti, body.name, body.session_id)
        seen = await self._source.observe(reference)
        if seen.state is AttentionState.UNAVAILABLE:
            await self._namespaces.want_head([self._namespace])
        else:
            await self._notifications.apply(self._namespace, [seen], door=Door.PUSH)
        try:
            is_new = await self._store.keep(
                reference.attention_id, body.capture(), is_over=seen.state.is_terminal, now=self._clock.now()
            )
        except CaptureDiffersError:
            raise Refused(
                Code.CAPTURE_MISMATCH, "the pause was captured before, and said to be something else"
            ) from None
        except KeysetUnavailableError:
            raise Refused(
                Code.KEYS_UNAVAILABLE, "the keys cannot be read now; nothing was kept, send it again"
            ) from None
        return {"attention_id": reference.attention_id, "state": seen.state.value, "repeated": not is_new}


@dataclass(frozen=True, slots=True)
class CapturePoint:
    """One namespace's receiver, the tokens that open it, and how much it takes."""

    receiver: CaptureReceiver
    tokens: Tokens
    rate: RateLimit
    limits: Limits = field(default_factory=lambda: Limits(max_body_bytes=2**16))


def capture_route(points: Mapping[str, CapturePoint]) -> Route:
    """Return the route for the public app."""

    async def endpoint(request: Request) -> Response:
        return await answer(request, points, _take)

    return Route("/capture/{namespace}", endpoint, methods=["POST"], name="capture")


async def _take(point: CapturePoint, request: Request) -> dict[str, Any]:
    return await point.receiver.take(await body_of(point, request, CaptureBody))
