"""The child of `apart`: builds the source from plain values and answers one page at a time over a pipe."""

import asyncio
import contextlib
import importlib
import logging
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from config.clock import SystemClock
from reconciler.errors import SourceError, WrongStore
from reconciler.sources.protocol import Known, Observes, Page, RefreshesSessions, Scans, Source
from reconciler.sources.services import SourceServices

# The child gives way to the processes that deliver.
_NICENESS = 5


class Whole(Source, Scans, RefreshesSessions, Observes, Protocol):
    """A source with every ability."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the child makes its source: `module` exports `build(namespace, options, services)`; all picklable."""

    module: str
    namespace: str
    options: Any
    folder: Path


class _KnownByParent:
    """Which ids are enrolled, as the parent says."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    async def enrolled(self, attention_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `attention_ids` that the parent has a notification for."""
        self._pipe.send(("enrolled?", list(attention_ids)))
        answer: frozenset[str] = self._pipe.recv()
        return answer


def serve(descriptor: int) -> None:
    """Answer pages on an inherited pipe until it is closed (the child's main function)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's interrupt is the parent's to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.nice(_NICENESS)
    # What fails here is told through the pipe; a library's own warnings have no place on the parent's stderr.
    logging.getLogger().addHandler(logging.NullHandler())
    with contextlib.suppress(EOFError, OSError), Connection(descriptor) as pipe:
        asyncio.run(_answer(pipe))


async def _answer(pipe: Connection) -> None:
    recipe: Recipe = pipe.recv()
    services = SourceServices(clock=SystemClock(), folder=recipe.folder)
    source: Whole = importlib.import_module(recipe.module).build(recipe.namespace, recipe.options, services)
    known = _KnownByParent(pipe)
    try:
        while True:
            cursor, limit, identity = pipe.recv()
            try:
                pipe.send(("page", await _page(source, cursor, limit, identity, known)))
            except SourceError as error:
                pipe.send(("error", (type(error).__name__, error.reason, str(error))))
    finally:
        await source.close()


async def _page(source: Whole, cursor: str | None, limit: int, identity: str | None, known: Known) -> Page:
    if identity is not None and await source.identity() != identity:
        raise WrongStore("wrong_store", "another store stands there than the namespace knows")
    return await source.page(cursor, limit=limit, known=known)
