"""Answers whether this process can do its work, dependency by dependency, with the reason where it cannot."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from config.clock import Clock
from config.errors import ConfigError
from reconciler.errors import SourceError

log = structlog.get_logger()

_WITHIN = timedelta(seconds=3)
_KEPT_FOR = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Dependency:
    """Something that the process stands on. `check` raises where it cannot be used.

    Without one that is required the process is not ready; another one is shown only (an agent's store that is down
    must not take the receiver of all others out of service).
    """

    name: str
    check: Callable[[], Awaitable[None]]
    is_required: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found; `reason` is None where all is well."""

    name: str
    reason: str | None
    is_required: bool


class Readiness:
    """Checks every dependency at once, each within a bound; what was found is kept for some seconds.

    A probe every second thus asks no dependency every second.
    """

    def __init__(self, dependencies: Sequence[Dependency], clock: Clock, *, within: timedelta = _WITHIN) -> None:
        self._dependencies = dependencies
        self._clock = clock
        self._within = within
        self._checking = asyncio.Lock()
        self._found: Sequence[Finding] = ()
        self._found_at: datetime | None = None

    async def findings(self) -> Sequence[Finding]:
        """Return what is true of each dependency, in their order; never raises."""
        async with self._checking:
            if self._found_at is None or self._clock.now() - self._found_at >= _KEPT_FOR:
                self._found = await asyncio.gather(*(self._check(item) for item in self._dependencies))
                self._found_at = self._clock.now()
            return self._found

    async def _check(self, item: Dependency) -> Finding:
        reason = None
        try:
            async with asyncio.timeout(self._within.total_seconds()):
                await item.check()
        except (ConfigError, SourceError) as error:  # each says one line, made to be read
            reason = str(error)
        except TimeoutError:
            reason = f"no answer within {self._within.total_seconds():g} s"
        except Exception as error:  # its text may hold what must not be shown
            log.warning("readiness.failed", dependency=item.name, error=type(error).__name__)
            reason = f"failed: {type(error).__name__}"
        return Finding(item.name, reason, item.is_required)
