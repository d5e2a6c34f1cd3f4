"""Leaves the logs as a test found them: one that configures them must not change what another one sees."""

import logging
from collections.abc import Iterator

import pytest
import structlog

from config.logs import LIBRARY_LOGGERS, OWN_LOGGERS


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    names = (*OWN_LOGGERS, *LIBRARY_LOGGERS)
    before = {name: (logging.getLogger(name).level, logging.getLogger(name).handlers) for name in names}
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    for name, (own_level, own_handlers) in before.items():
        logging.getLogger(name).setLevel(own_level)
        logging.getLogger(name).handlers = own_handlers
    logging.captureWarnings(False)
    structlog.reset_defaults()
