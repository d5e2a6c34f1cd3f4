"""Pages through a source in a process of its own, so that a scan's computation never holds up a delivery.

A page of 200 pending actions is about two seconds of pure Python. The child builds the same source from plain
values and answers one request at a time over a pipe; while it works it asks its parent which ids are enrolled, so
the result is that of the source itself. It is started by the first page, and ends with its parent.
"""

import asyncio
import contextlib
import importlib
import logging
import multiprocessing
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Protocol

from config.clock import Clock, SystemClock
from reconciler.errors import SourceError, SourceMissing, SourceRefused, SourceUnavailable, WrongStore
from reconciler.references import Observation, Reference
from reconciler.sources.protocol import Known, Observes, Page, RefreshesSessions, Scans, SessionView, Source
from reconciler.sources.services import SourceServices

# The child gives way to the processes that deliver.
_NICENESS = 5

# How long the child may take to end by itself before it is killed.
_END_SECONDS = 5.0

_ERRORS = {error.__name__: error for error in (SourceMissing, SourceRefused, SourceUnavailable, WrongStore)}


class Whole(Source, Scans, RefreshesSessions, Observes, Protocol):
    """A source with every ability."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the child makes its source: `module` exports `build(namespace, options, services)`; all picklable."""

    module: str
    namespace: str
    options: Any
    folder: Path


class ApartSource:
    """The source `inner`, with its pages read by a child process; the rest is asked of `inner` itself."""

    def __init__(self, inner: Whole, recipe: Recipe, clock: Clock) -> None:
        self._inner = inner
        self._recipe = recipe
        self._clock = clock
        self._turn = asyncio.Lock()
        self._child: _Child | None = None
        self._expected_identity: str | None = None

    async def identity(self) -> str | None:
        """Return the inner source's identity; from now on the child reads only that store."""
        self._expected_identity = await self._inner.identity()
        return self._expected_identity

    async def check(self) -> None:
        """Check the inner source."""
        await self._inner.check()

    async def session(self, session_id: str, *, known: Known) -> SessionView:
        """Refresh a session by the inner source."""
        return await self._inner.session(session_id, known=known)

    async def observe(self, reference: Reference) -> Observation:
        """Observe by the inner source."""
        return await self._inner.observe(reference)

    async def page(self, cursor: str | None, *, limit: int, known: Known) -> Page:
        """Return one page as the inner source would; one at a time.

        Raises what the source raises, and SourceUnavailable (`child_ended`) where the child died over it: the next
        call starts another.
        """
        async with self._turn:
            seen_at = self._clock.now()
            child = self._child = self._child if self._child and self._child.is_alive else await _start(self._recipe)
            try:
                page = await child.page((cursor, limit, self._expected_identity), known)
            except (EOFError, OSError):
                await self._end_child()
                raise SourceUnavailable("child_ended", "the process that reads pages ended over one") from None
            except asyncio.CancelledError:
                # A half-read answer would be taken for the next page's.
                await asyncio.shield(self._end_child())
                raise
            return replace(page, active=tuple(replace(item, observed_at=seen_at) for item in page.active))

    async def close(self) -> None:
        """End the child and close the inner source; safe to call twice."""
        async with self._turn:
            await self._end_child()
        await self._inner.close()

    async def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.end()


@dataclass(frozen=True, slots=True)
class _Child:
    """The parent's end: the process, and the pipe to it."""

    process: SpawnProcess
    pipe: Connection

    @property
    def is_alive(self) -> bool:
        return self.process.is_alive()

    async def page(self, request: tuple[str | None, int, str | None], known: Known) -> Page:
        """Ask for a page, and answer what the child asks on the way; EOFError or OSError where it died."""
        await asyncio.to_thread(self.pipe.send, request)
        while True:
            word, value = await asyncio.to_thread(self.pipe.recv)
            if word == "enrolled?":
                await asyncio.to_thread(self.pipe.send, await known.enrolled(value))
            elif word == "page":
                assert isinstance(value, Page), "the child answers a page with a page"
                return value
            else:
                name, reason, message = value
                raise _ERRORS.get(name, SourceUnavailable)(reason, message)

    async def end(self) -> None:
        """Close the pipe, on which the child ends; kill it where it does not."""
        self.process.terminate()
        await asyncio.to_thread(self.process.join, _END_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            await asyncio.to_thread(self.process.join)
        # Not before: a thread that still waits to read would be left with a closed descriptor.
        self.pipe.close()


async def _start(recipe: Recipe) -> _Child:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(recipe, theirs), name=f"pages-{recipe.namespace}", daemon=True)
    await asyncio.to_thread(process.start)
    theirs.close()
    return _Child(process, ours)


class _KnownByParent:
    """Which ids are enrolled, as the parent says."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    async def enrolled(self, attention_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `attention_ids` that the parent has a notification for."""
        self._pipe.send(("enrolled?", list(attention_ids)))
        answer: frozenset[str] = self._pipe.recv()
        return answer


def _serve(recipe: Recipe, pipe: Connection) -> None:
    """Answer pages until the pipe is closed (the child's main function)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's interrupt is the parent's to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.nice(_NICENESS)
    # What fails here is told through the pipe; a library's own warnings have no place on the parent's stderr.
    logging.getLogger().addHandler(logging.NullHandler())
    with contextlib.suppress(EOFError, OSError):
        asyncio.run(_answer(recipe, pipe))


async def _answer(recipe: Recipe, pipe: Connection) -> None:
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
