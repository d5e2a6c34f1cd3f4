"""Says once that something stopped working, and once that it works again."""

import structlog

log = structlog.get_logger()


class Outage:
    """The state of one dependency; `name` is the first part of its log events."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._has_begun = False

    def begin(self, error: Exception, *, is_expected: bool = True) -> None:
        """Note a failure; only the first of a row is logged, by its class: the text may hold rows or a URL."""
        if not self._has_begun:
            log.warning(f"{self._name}.lost", error=type(error).__name__, exc_info=not is_expected)
        self._has_begun = True

    def end(self) -> None:
        """Note a success; only the first after a failure is logged."""
        if self._has_begun:
            log.info(f"{self._name}.restored")
        self._has_begun = False
