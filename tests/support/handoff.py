"""A receiver of the handoff on a real database and a real TCP port, and the calls of a sender."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.types import ASGIApp

from config.clock import Clock, SystemClock
from reconciler.handoff_store import HandoffStore, Report, latest_reports
from reconciler.notifications import Notifications
from reconciler.references import Reference, cayu_attention_id
from reconciler.routes import Routing, Target, default_routes
from reconciler.states import Kind
from worker.web.guard import Limits
from worker.web.handoff import HandoffPoint, HandoffRoutes
from worker.web.intake import Intake
from worker.web.models import PROTOCOL, wire_reference
from worker.web.public import public_app
from worker.web.rates import RateLimit
from worker.web.receiver import HandoffReceiver
from worker.web.server import WebServer
from worker.web.tokens import Tokens

TOKEN = "a-token-of-the-tests"
OPS = Target("ops", "console", ("ops",))


def routing() -> Routing:
    """Send everything to one destination."""
    return Routing(default_routes([OPS.name]), {OPS.name: OPS})


def point(
    engine: AsyncEngine,
    namespace: str,
    *,
    tokens: Sequence[str] = (TOKEN,),
    clock: Clock | None = None,
    per_second: float = 10_000,
    max_group: int = 100,
    limits: Limits | None = None,
    on_outbox: Callable[[], None] = lambda: None,
) -> HandoffPoint:
    """Make one namespace's receiver on `engine`."""
    clock = clock or SystemClock()
    store = HandoffStore(engine, namespace)
    notifications = Notifications(engine, clock, routing, on_outbox=on_outbox)
    intake = Intake(namespace, notifications, store, max_group=max_group)
    receiver = HandoffReceiver(intake, store, clock, reconcile_every=timedelta(minutes=5))
    rate = RateLimit(clock, per_second=per_second, burst=int(per_second))
    return HandoffPoint(receiver, Tokens(tokens), rate, limits or Limits())


def handoff_app(points: dict[str, HandoffPoint]) -> ASGIApp:
    """Make the public application with nothing but the handoff."""
    return public_app(HandoffRoutes(points).routes())


@asynccontextmanager
async def serving(app: ASGIApp, *, port: int = 0) -> AsyncIterator[WebServer]:
    """Serve `app` on loopback for the time of a block."""
    async with WebServer(app, host="127.0.0.1", port=port, grace=timedelta(seconds=5)) as server:
        yield server


@asynccontextmanager
async def sender(app: ASGIApp, namespace: str, token: str = TOKEN) -> AsyncIterator[httpx.AsyncClient]:
    """Call `app` as the sender of `namespace`, without a socket."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport,
        base_url=f"http://handbell.test/handoff/{namespace}/",
        headers={"Authorization": f"Bearer {token}"},
    ) as client:
        yield client


def reference(number: int = 1, *, session_id: str = "s-1", kind: Kind = Kind.USER_INPUT) -> dict[str, Any]:
    """Make a reference as it travels, with its true identity."""
    made = Reference("", session_id, f"instance-of-{session_id}", kind, f"action-{number}", "round", "call", number)
    return {**wire_reference(made), "attention_id": cayu_attention_id(made)}


def active(item: dict[str, Any], *, requester: str | None = "alice@example.com") -> dict[str, Any]:
    """Make the observation that a scan or a sink sends."""
    return {
        "agent_name": "worker",
        "reason": "current_action",
        "reference": item,
        "requester_ref": requester,
        "state": "active",
        "summary": "User input required.",
    }


def verified(item: dict[str, Any], state: str, reason: str = "durable_closure") -> dict[str, Any]:
    """Make the observation that answers a verify."""
    return {"reason": reason, "reference": item, "state": state}


def body(*observations: dict[str, Any], **extra: Any) -> dict[str, Any]:
    """Make the body of POST observations."""
    return {"observations": list(observations), "protocol": PROTOCOL, "runtime_version": "0.15.0", **extra}


def complete(session_id: str = "s-1") -> dict[str, Any]:
    """Make the scope that says: this is all of the session."""
    return {"session_scope": {"complete": True, "session_id": session_id}}


async def reports(engine: AsyncEngine) -> Mapping[str, Report]:
    """Return the newest report of every namespace."""
    async with engine.connect() as connection:
        return await latest_reports(connection)
