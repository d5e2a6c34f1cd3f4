"""The sources of this process by namespace, and whether each may be believed now."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.errors import SourceError, SourceRefused, UnknownNamespace, WrongStore
from reconciler.namespaces import Namespaces
from reconciler.sources.protocol import Source


@dataclass(frozen=True, slots=True)
class Entry:
    """A configured source, how often it is swept, and the enrollment boundary that the source was made with."""

    namespace: str
    type: str
    source: Source
    sweep_every: timedelta
    head_every: timedelta
    enrolled_after: datetime | None = None


class SourceBook:
    """Hands out sources; one whose store turned out to be another is refused at every door until accepted."""

    def __init__(self, entries: Mapping[str, Entry], namespaces: Namespaces) -> None:
        self._entries = dict(entries)
        self._namespaces = namespaces
        self._refused: dict[str, SourceError] = {}

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Return the configured namespaces, sorted."""
        return tuple(sorted(self._entries))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return every configured source, by namespace."""
        return tuple(self._entries[name] for name in self.namespaces)

    def entry(self, namespace: str) -> Entry:
        """Return the source of a namespace, believed or not; raises UnknownNamespace."""
        try:
            return self._entries[namespace]
        except KeyError:
            known = ", ".join(self.namespaces) or "none"
            raise UnknownNamespace(
                f"no source is configured for namespace {namespace!r} (configured: {known})"
            ) from None

    def believed(self, namespace: str) -> Source | None:
        """Return the source, None where there is none or where its store is refused."""
        entry = self._entries.get(namespace)
        return entry.source if entry and namespace not in self._refused else None

    async def recheck(self, namespace: str) -> Source:
        """Ask the store who it is and return the source; raises WrongStore or another SourceError.

        WrongStore refuses the namespace from now on; the store that it knows coming back lifts that. So does another
        enrollment boundary than the source was made with: two processes that start for the first time at once

            A reads no boundary | B reads no boundary | A writes its own | B would enroll by another

        must not differ, and the later one takes the standing boundary when it is started again.
        """
        entry = self.entry(namespace)
        try:
            remembered = await self._namespaces.remember(
                namespace, entry.type, entry.source, enrolled_after=entry.enrolled_after
            )
        except WrongStore as error:
            self._refused[namespace] = error
            raise
        if remembered.enrolled_after != entry.enrolled_after:
            refusal = self._refused[namespace] = SourceRefused(
                "boundary_moved",
                f"namespace {namespace!r}: another process has just set its enrollment boundary: start this one again",
            )
            raise refusal
        self._refused.pop(namespace, None)
        return entry.source

    async def close(self) -> None:
        """Close every source."""
        for entry in self._entries.values():
            await entry.source.close()
