"""Finds Handbell's sink among those of a Cayu application."""

from typing import Any, Protocol, runtime_checkable

from .errors import SinkConfigError


@runtime_checkable
class HandbellSink(Protocol):
    """What makes a sink Handbell's: attributes, not a class, since two wheels may hold the same code."""

    handbell_namespace: str

    async def probe(self) -> bool:
        """Say whether an emit could succeed now."""
        ...


def handbell_sinks(app: Any) -> list[HandbellSink]:
    """Return the application's Handbell sinks.

    Cayu 0.15 offers no public way to read an application's sinks; this is the one place that knows the private one.
    """
    return [sink for sink in app._event_sinks if isinstance(sink, HandbellSink)]


def sink_of(app: Any, namespace: str | None) -> HandbellSink:
    """Return the sink of `namespace`, or (None) the only one there is; `SinkConfigError` otherwise.

    A recovery in an application without it would mark failed events as delivered, and the hints would be lost.
    """
    sinks = handbell_sinks(app)
    if namespace is None:
        if len({sink.handbell_namespace for sink in sinks}) == 1:
            return sinks[0]
        raise SinkConfigError(f"the application must have exactly one Handbell sink to recover, it has {len(sinks)}")
    for sink in sinks:
        if sink.handbell_namespace == namespace:
            return sink
    raise SinkConfigError(
        f"the application has no Handbell sink of namespace {namespace!r}: "
        "a recovery without it would mark failed events as delivered"
    )
