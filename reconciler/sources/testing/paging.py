"""Reads a source as a sweep does, for its tests."""

from collections.abc import Sequence

from reconciler.references import Observation
from reconciler.sources.protocol import Page, Scans

_MOST_PAGES = 100


class KnownIds:
    """A namespace in which these ids have a notification; remembers what it was asked."""

    def __init__(self, *attention_ids: str) -> None:
        self.attention_ids = frozenset(attention_ids)
        self.asked: list[Sequence[str]] = []

    async def enrolled(self, attention_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `attention_ids` that have a notification."""
        self.asked.append(list(attention_ids))
        return self.attention_ids & frozenset(attention_ids)


async def every_page(source: Scans, *, limit: int = 200, known: KnownIds | None = None) -> list[Page]:
    """Follow the cursor to the end."""
    pages = [await source.page(None, limit=limit, known=known or KnownIds())]
    while pages[-1].next_cursor is not None:
        pages.append(await source.page(pages[-1].next_cursor, limit=limit, known=known or KnownIds()))
        assert len(pages) < _MOST_PAGES, "the cursor never ends"
    return pages


async def all_shown(source: Scans, *, limit: int = 200, known: KnownIds | None = None) -> list[Observation]:
    """Return what a whole scan shows, in its order."""
    return [item for page in await every_page(source, limit=limit, known=known) for item in page.active]
