"""What a batch of stream entries is: hints with the tokens to answer on, entries that are no hints, and gaps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sinks.dead_letters import DeadEntry, dead_entry
from sinks.emit.errors import MalformedHint
from sinks.emit.hint import Hint, parse
from sinks.hint_stream import RawEntry


@dataclass(frozen=True, slots=True)
class Received:
    """A hint, the entry it came in, and the token to answer on if it has one."""

    entry: RawEntry
    hint: Hint
    token: str | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Entries read together. `trimmed` are ids whose content was removed while they were pending: a loss."""

    received: Sequence[Received]
    dead: Sequence[DeadEntry]
    dead_ids: Sequence[bytes]
    trimmed: Sequence[bytes]

    @property
    def stream_ids(self) -> list[bytes]:
        """Return every entry's id, to acknowledge once all is committed."""
        return [item.entry.stream_id for item in self.received] + [*self.dead_ids, *self.trimmed]


def read_batch(entries: Iterable[RawEntry]) -> Batch:
    """Sort entries into hints, dead letters and gaps; never raises for what an entry holds."""
    received: list[Received] = []
    dead: list[DeadEntry] = []
    dead_ids: list[bytes] = []
    trimmed: list[bytes] = []
    for entry in entries:
        if not entry.fields:
            trimmed.append(entry.stream_id)
            continue
        try:
            hint, token = parse(entry.fields)
        except MalformedHint as error:
            dead.append(dead_entry(entry.stream_id, entry.fields, error.reason))
            dead_ids.append(entry.stream_id)
        else:
            received.append(Received(entry, hint, token))
    return Batch(received, dead, dead_ids, trimmed)
