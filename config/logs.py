"""Sets up the log, once for the process: structlog and the libraries' own loggers, to one stream, redacted.

One event a line, as JSON or for people; standard output belongs to the commands. Libraries are heard from warnings
up whatever the level is: what they say below holds SQL parameters, request bodies and a line for each poll.
"""

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import Processor

from config.redaction import redact

OWN_LOGGERS = ("config", "sinks", "reconciler", "worker", "handbell")
# Some libraries bring handlers of their own when they are set up; what they say goes the same way as the rest.
LIBRARY_LOGGERS = ("uvicorn", "uvicorn.error", "uvicorn.access", "arq", "aiohttp.access", "alembic", "slack_sdk")

# What every event goes through, ours or a library's, before it is rendered. Tracebacks become text here, without
# local variables, so that the redaction sees them.
_SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    structlog.processors.format_exc_info,
    redact,
)


def configure_logs(*, form: str = "console", level: str = "info", stream: TextIO | None = None) -> None:
    """Log to `stream` (stderr unless given) from now on, as `form` ("console" or "json"); safe to call again.

    Loggers that the modules hold already (`structlog.get_logger()`) follow.
    """
    target = stream or sys.stderr
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(form, target)],
        )
    )
    _set_levels(handler, logging.getLevelNamesMapping()[level.upper()])
    logging.captureWarnings(True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _renderer(form: str, target: TextIO) -> Processor:
    if form == "json":
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(colors=target.isatty(), exception_formatter=structlog.dev.plain_traceback)


def _set_levels(handler: logging.Handler, level: int) -> None:
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(level, logging.WARNING))
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(level)
    for name in LIBRARY_LOGGERS:
        library = logging.getLogger(name)
        library.handlers = []
        library.setLevel(logging.NOTSET)  # some set one of their own when they are configured
        library.propagate = True
