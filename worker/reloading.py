"""SIGHUP: reads the configuration again and takes its channels, routes and operator, or says exactly why not.

The new ones are built as a whole before the old ones go; whatever is wrong with them is one log line, and the old stay.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError

from config.errors import ConfigError
from config.loading import Configuration, load_configuration
from reconciler.replanning import Replanner
from worker.app import Core, telling_of

log = structlog.get_logger()

_RELOADED = frozenset({"channels", "routes", "operator"})


async def reload(core: Core, *, environ: Mapping[str, str] = os.environ) -> bool:
    """Take what the configuration says now; False where it cannot be used, and then nothing is changed."""
    try:
        configuration = load_configuration(core.configuration.file, environ=environ, cwd=core.configuration.folder)
        telling = telling_of(configuration, core.services)
    except ConfigError as error:
        log.warning("settings.not_reloaded", reason=str(error), kept="the channels and routes from before")
        return False
    waiting = _needs_restart(core.configuration, configuration)
    if waiting:
        log.warning("settings.need_a_restart", sections=waiting)
    core.live.replace(telling)
    log.info("settings.reloaded", destinations=sorted(telling.destinations), routes=len(telling.routing.routes))
    return True


async def reload_forever(core: Core, wanted: asyncio.Event, then: Callable[[], Awaitable[None]]) -> None:
    """Reload whenever `wanted` is set, and do `then` after a reload that changed something."""
    while True:
        await wanted.wait()
        wanted.clear()
        if await reload(core):
            await then()


async def plan_anew(replanner: Replanner) -> None:
    """Plan everything by new routes; where the database does not answer the regular turn does it."""
    try:
        if await replanner.adopt():
            await replanner.run()
    except (SQLAlchemyError, OSError) as error:
        log.warning("routes.not_replanned", error=type(error).__name__)


def _needs_restart(before: Configuration, after: Configuration) -> list[str]:
    old, new = _sections(before), _sections(after)
    return sorted(name for name in new if new[name] != old[name])


def _sections(configuration: Configuration) -> dict[str, Any]:
    settings = configuration.settings
    return {name: getattr(settings, name) for name in type(settings).model_fields if name not in _RELOADED}
