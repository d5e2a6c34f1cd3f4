"""A source read in small pages, with a door in between: what happens to a store while it is paged through."""

from collections.abc import Awaitable, Callable
from typing import Any

from reconciler.sources.protocol import Known, Page


class SmallPages:
    """The source `inner`, at most `limit` rows a page; `between` is awaited before every page but the first."""

    def __init__(self, inner: Any, limit: int, between: Callable[[], Awaitable[None]] | None = None) -> None:
        self._inner = inner
        self._limit = limit
        self._between = between
        self.asked: list[str | None] = []

    async def page(self, cursor: str | None, *, limit: int, known: Known) -> Page:
        """Return a page of the inner source."""
        if cursor is not None and self._between is not None:
            await self._between()
        self.asked.append(cursor)
        page: Page = await self._inner.page(cursor, limit=min(limit, self._limit), known=known)
        return page

    async def identity(self) -> Any:
        """Return the inner source's identity."""
        return await self._inner.identity()

    async def check(self) -> None:
        """Check the inner source."""
        await self._inner.check()

    async def session(self, session_id: str, *, known: Known) -> Any:
        """Refresh by the inner source."""
        return await self._inner.session(session_id, known=known)

    async def observe(self, reference: Any) -> Any:
        """Observe by the inner source."""
        return await self._inner.observe(reference)

    async def close(self) -> None:
        """Close the inner source."""
        await self._inner.close()
