"""Pages through a source in a process of its own, so that a scan's computation never holds up a delivery.

A page of 200 pending actions is about two seconds of pure Python. The child builds the same source from plain
values and answers one request at a time over a pipe; while it works it asks its parent which ids are enrolled, so
the result is that of the source itself. It is started by the first page that is worth it, and ends with its parent.
"""

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from config.clock import Clock
from reconciler.errors import SourceError, SourceMissing, SourceRefused, SourceUnavailable, WrongStore
from reconciler.references import Observation, Reference
from reconciler.sources.apart_child import Recipe, Whole
from reconciler.sources.protocol import Known, Page, SessionView

__all__ = ["ApartSource", "Recipe"]

# How long the child may take to end by itself before it is killed.
_END_SECONDS = 5.0

_ERRORS = {error.__name__: error for error in (SourceMissing, SourceRefused, SourceUnavailable, WrongStore)}


class ApartSource:
    """The source `inner`, with its pages read by a child process; the rest is asked of `inner` itself.

    A child costs seconds to start. Up to `here_at_most` rows are read without one: until a page of so many shows
    that there are more. From then on every page is read apart.
    """

    def __init__(self, inner: Whole, recipe: Recipe, clock: Clock, *, here_at_most: int = 0) -> None:
        self._inner = inner
        self._recipe = recipe
        self._clock = clock
        self._here_at_most = here_at_most
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
        """Return one page as the inner source would, or a smaller one, with the parent's time; one at a time.

        Raises what the source raises, and SourceUnavailable (`child_ended`) where the child died over it: the next
        call starts another.
        """
        async with self._turn:
            if self._here_at_most:
                page = await self._inner.page(cursor, limit=min(limit, self._here_at_most), known=known)
                if page.next_cursor is not None:
                    self._here_at_most = 0
                return page
            seen_at = self._clock.now()
            child = await self._living_child()
            try:
                page = await child.page((cursor, limit, self._expected_identity), known)
            except SourceError:
                raise  # a complete answer: the child goes on
            except (EOFError, OSError):
                await self._end_child()
                raise SourceUnavailable("child_ended", "the process that reads pages ended over one") from None
            except BaseException:
                # Cancelled, or `known` failed: half an exchange would be taken for the next page's.
                await asyncio.shield(self._end_child())
                raise
            return replace(page, active=tuple(replace(item, observed_at=seen_at) for item in page.active))

    async def close(self) -> None:
        """End the child and close the inner source; safe to call twice."""
        async with self._turn:
            await self._end_child()
        await self._inner.close()

    async def _living_child(self) -> "_Child":
        if self._child is not None and not self._child.is_alive:
            await self._end_child()
        if self._child is None:
            starting = asyncio.ensure_future(_start(self._recipe))
            try:
                self._child = await asyncio.shield(starting)
            except asyncio.CancelledError:
                # A thread starts it and goes on: without this nobody would know of the child any more.
                self._child = await starting
                await self._end_child()
                raise
        return self._child

    async def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.end()


@dataclass(frozen=True, slots=True)
class _Child:
    """The parent's end: the process, and the pipe to it."""

    process: subprocess.Popen[bytes]
    pipe: Connection

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

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
        """End the process, by force where it does not go by itself, and close the pipe."""
        self.process.terminate()
        try:
            await asyncio.to_thread(self.process.wait, _END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)
        # Not before: a thread that still waits to read would be left with a closed descriptor.
        self.pipe.close()


# As multiprocessing's spawn does, but without its resource tracker, a process that would outlive every child; and
# the parent's main module is not run again.
_CHILD_MAIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from reconciler.sources.apart_child import serve; serve(int(sys.argv[1]))"
)


async def _start(recipe: Recipe) -> _Child:
    ours, theirs = Pipe()
    descriptor = theirs.fileno()
    command = [sys.executable, "-c", _CHILD_MAIN, str(descriptor), json.dumps(sys.path)]
    process = await asyncio.to_thread(
        subprocess.Popen, command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=(descriptor,)
    )
    theirs.close()
    child = _Child(process, ours)
    await asyncio.to_thread(ours.send, recipe)
    return child
