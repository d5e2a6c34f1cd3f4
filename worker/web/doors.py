"""What the doors of the web role are made of: their tokens, their rates, and the captures' receivers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncEngine

from config.clock import Clock
from reconciler.pause_store.captures import CaptureStore
from reconciler.sources.pauses import PausesSource
from worker.answers.opening import open_keyset
from worker.answers.sealing import KeysetSealer
from worker.app import Core
from worker.web.capture import CapturePoint, CaptureReceiver
from worker.web.rates import RateLimit
from worker.web.tokens import Tokens, first_run_token

# A burst is what a fleet of agents sends at once after an outage.
_BURST_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Connection:
    """How an agent is connected to a source; `token` only where it is ours (made at the first start)."""

    namespace: str
    token: str | None


def open_tokens(
    configured: Sequence[SecretStr], namespace: str, state_dir: Path, door: str
) -> tuple[Tokens, Connection]:
    """Return the tokens of a namespace's door: the configured ones, else the one made at the first start."""
    if configured:
        return Tokens(token.get_secret_value() for token in configured), Connection(namespace, None)
    made = first_run_token(state_dir, namespace, door)
    return Tokens([made]), Connection(namespace, made)


def rate_of(clock: Clock, per_second: float) -> RateLimit:
    """Return the bound of one namespace's requests."""
    return RateLimit(clock, per_second=per_second, burst=max(1, int(per_second * _BURST_SECONDS)))


def capture_points(core: Core, engine: AsyncEngine) -> tuple[dict[str, CapturePoint], tuple[Connection, ...]]:
    """Return a receiver for each source of paused runs; the keys are opened only where there is one."""
    sources = {entry.namespace: entry.source for entry in core.book.entries if isinstance(entry.source, PausesSource)}
    if not sources:
        return {}, ()
    sealer = KeysetSealer(open_keyset(core.configuration, core.clock))
    points: dict[str, CapturePoint] = {}
    connections: list[Connection] = []
    for namespace, source in sources.items():
        options = source.options
        tokens, connection = open_tokens(options.tokens, namespace, core.configuration.state_dir, "capture")
        receiver = CaptureReceiver(
            namespace,
            source,
            CaptureStore(engine, namespace, sealer),
            core.notifications.on(engine),
            core.namespaces,
            core.clock,
        )
        points[namespace] = CapturePoint(receiver, tokens, rate_of(core.clock, options.requests_per_second))
        connections.append(connection)
    return points, tuple(connections)
