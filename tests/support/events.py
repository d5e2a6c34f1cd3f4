"""Cayu events made by hand, full of content that must never leave the agent's process."""

from datetime import UTC, datetime

from cayu.events import Event

from worker.scripted.runtime import CONTENT_MARK

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def make_event(number: int = 1, event_type: str = "session.interrupted", session_id: str = "s-1") -> Event:
    """Return an event as a sink receives it."""
    return Event(
        type=event_type,
        session_id=session_id,
        id=f"cayu_event_{number}",
        timestamp=AT,
        agent_name=CONTENT_MARK,
        payload={"question": CONTENT_MARK},
    )
