"""Asks the sources just before somebody is told: only what is active now may be said to be waiting.

What the sources answer is applied like any other observation, so a request that turns out to be settled is settled
for everybody. A source that cannot be asked counts as good for its last word while that is fresh.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta

import structlog

from config.clock import Clock
from reconciler.enrolled import Enrolled
from reconciler.errors import SourceError
from reconciler.notifications import Notifications
from reconciler.reasons import DecisionReason, Door
from reconciler.references import Observation
from reconciler.sources.protocol import Observes, PushOnly, Source
from reconciler.states import AttentionState, Evidence

log = structlog.get_logger()

# What a request is known by now: an observation, or the reason why nobody can say.
Answer = Observation | DecisionReason

# A question to a store in this process is mostly its CPU: more at once only get in each other's way.
_AT_ONCE = 4
# For all questions to one source together, and below a delivery's lease: were each of a batch waited for in turn, the
# lease would lapse meanwhile, another process would take the batch over and wait again, and nothing in it, of healthy
# sources neither, would ever go.
BOUND = timedelta(seconds=20)


class Confirmer:
    """Confirms requests; `source_of` returns the source of a namespace that may be believed, or None."""

    def __init__(
        self,
        clock: Clock,
        source_of: Callable[[str], Source | None],
        notifications: Notifications,
        *,
        at_once: int = _AT_ONCE,
        bound: timedelta = BOUND,
    ) -> None:
        self._clock = clock
        self._source_of = source_of
        self._notifications = notifications
        self._at_once = at_once
        self._bound = bound

    async def confirm(self, requests: Iterable[Enrolled]) -> Mapping[int, Answer]:
        """Return for each request (by its notification's id) what is true of it now, or why nobody can say.

        An outage, a hanging source and an exception out of a source are `unavailable`. The answers are committed
        before this returns. Raises SQLAlchemy's errors; then nothing is known.
        """
        by_namespace: dict[str, dict[int, Enrolled]] = defaultdict(dict)
        for request in requests:
            by_namespace[request.namespace][request.id] = request
        asked = [self._ask(namespace, list(members.values())) for namespace, members in sorted(by_namespace.items())]
        answers: dict[int, Answer] = {}
        # Every question ends before the first error is raised: none may go on behind the caller's back.
        for answered in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(answered, BaseException):
                raise answered
            answers |= answered
        return answers

    async def _ask(self, namespace: str, requests: Sequence[Enrolled]) -> Mapping[int, Answer]:
        source = self._source_of(namespace)
        if source is None:
            return {request.id: DecisionReason.NO_SOURCE for request in requests}
        if not isinstance(source, Observes):
            return {request.id: self._last_word(source, request) for request in requests}
        asked: Observes = source
        gate = asyncio.Semaphore(self._at_once)
        until = asyncio.get_running_loop().time() + self._bound.total_seconds()

        async def observe(request: Enrolled) -> Observation:
            return await self._observe(asked, request, gate, until)

        observations = await asyncio.gather(*(observe(request) for request in requests))
        await self._notifications.apply(namespace, observations, door=Door.DELIVERY)
        return {request.id: seen for request, seen in zip(requests, observations, strict=True)}

    async def _observe(self, source: Observes, request: Enrolled, gate: asyncio.Semaphore, until: float) -> Observation:
        try:
            async with asyncio.timeout_at(until), gate:
                return await source.observe(request.reference)
        except (SourceError, TimeoutError) as error:
            log.warning("source.unanswered", namespace=request.namespace, error=type(error).__name__)
        except Exception as error:  # a plug-in's source: one bad answer must not stop the others' deliveries
            log.exception("source.failed_unexpectedly", namespace=request.namespace, error=type(error).__name__)
        return Observation(
            request.reference, AttentionState.UNAVAILABLE, Evidence.STORE_UNAVAILABLE, observed_at=self._clock.now()
        )

    def _last_word(self, source: Source, request: Enrolled) -> Answer:
        """A source that says nothing of `fresh_for` is never fresh: nothing may be sent on an unknown age."""
        fresh_for = source.fresh_for if isinstance(source, PushOnly) else timedelta(0)
        is_old = self._clock.now() - request.observed_at > fresh_for
        if request.state is AttentionState.ACTIVE and is_old:
            return DecisionReason.NOT_CONFIRMED_LATELY
        return Observation(request.reference, request.state, request.reason, request.observed_at)
