"""A Cayu sink for Handbell's own environment: it commits hints to the inbox itself, without Redis."""

from cayu.events import Event
from cayu.observability import EventSink

from sinks.emit.wakeup import hint_of
from sinks.inbox import Inbox


class InboxSink(EventSink):
    """`emit` returns when the hint is a committed row; a database that refuses makes it raise, the runtime retries."""

    def __init__(self, inbox: Inbox, *, namespace: str) -> None:
        self.handbell_namespace = namespace
        self._inbox = inbox

    async def emit(self, event: Event) -> None:
        """Commit the event's hint, once however often it comes; drop what cannot concern a person."""
        hint = hint_of(event, self.handbell_namespace)
        if hint is not None:
            await self._inbox.insert([hint])

    async def probe(self) -> bool:
        """Say whether the database would take a row now."""
        try:
            await self._inbox.check_writable()
        except Exception:
            return False
        return True
