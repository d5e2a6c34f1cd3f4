"""Where the request of a pause is kept, word for word, until it is answered."""

import json
from typing import Any, NoReturn, Protocol

from .binding import ScopeBinder
from .claims import PauseClaims
from .consumption import declared_durability
from .errors import (
    CheckpointLostError,
    InteractionConfigurationError,
    PauseCheckpointNotFoundError,
    PayloadBindingError,
)
from .keys import payload_key_of


class CheckpointCommandPort(Protocol):
    """A runtime's checkpoints, as far as a pause needs them.

    Four verbs; the documentation shows reading, writing and the resolution of a thread's current checkpoint,
    and leaves the fourth and the spelling open. Ours: `read_metadata`, `write_metadata`,
    `resolve_checkpoint_id`, and `delete_metadata`, so that a question need not outlive its answer. A port
    declares `durable = True` where it outlives the process; silence is volatile.
    """

    async def read_metadata(self, *, thread_id: str, checkpoint_id: str, key: str) -> str | None:
        """Return the recorded text, or None where there is none."""
        ...

    async def write_metadata(
        self, *, thread_id: str, checkpoint_id: str, key: str, value: str, task_id: str
    ) -> bool | None:
        """Record the text, replacing what was there; raises, or returns False, where it was not recorded."""
        ...

    async def resolve_checkpoint_id(self, *, thread_id: str) -> str | None:
        """Return the thread's current checkpoint, or None where it has none."""
        ...

    async def delete_metadata(self, *, thread_id: str, checkpoint_id: str, key: str) -> None:
        """Forget the text; no error where there is none."""
        ...


class InMemoryCheckpoints:
    """Checkpoints of this process, forgotten with it."""

    durable = False

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str, str], str] = {}
        self._current: dict[str, str] = {}

    def set_current(self, thread_id: str, checkpoint_id: str) -> None:
        """Say which checkpoint the thread stands at."""
        self._current[thread_id] = checkpoint_id

    async def read_metadata(self, *, thread_id: str, checkpoint_id: str, key: str) -> str | None:
        """Return the recorded text, or None."""
        return self._texts.get((thread_id, checkpoint_id, key))

    async def write_metadata(self, *, thread_id: str, checkpoint_id: str, key: str, value: str, task_id: str) -> None:
        """Record the text; `task_id` is not kept."""
        del task_id
        self._texts[thread_id, checkpoint_id, key] = value

    async def resolve_checkpoint_id(self, *, thread_id: str) -> str | None:
        """Return the thread's current checkpoint, or None."""
        return self._current.get(thread_id)

    async def delete_metadata(self, *, thread_id: str, checkpoint_id: str, key: str) -> None:
        """Forget the text."""
        self._texts.pop((thread_id, checkpoint_id, key), None)


def parse_json(text: object) -> Any:
    """Return the value of a JSON text; raises ValueError for anything else, NaN and infinities too."""
    if not isinstance(text, str):
        raise ValueError("not a text")  # noqa: TRY004  # one error for "not JSON", whatever it is instead
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def missing_record(what: str, *, durable: bool) -> Exception:
    """Return the error for a record that is not there: lost where nobody promised to keep it."""
    if durable:
        return PauseCheckpointNotFoundError(f"no {what} is recorded for this pause")
    return CheckpointLostError(f"the {what} of this pause is gone; its checkpoints were never durable")


class PausePayloadStore:
    """Keeps the request of each pause on a runtime's checkpoints; without them it keeps nothing and says so."""

    def __init__(self, commands: CheckpointCommandPort | None = None, binder: ScopeBinder | None = None) -> None:
        self._commands = commands
        self._binder = ScopeBinder() if binder is None else binder

    @property
    def wired(self) -> bool:
        """Whether there are checkpoints to keep anything on."""
        return self._commands is not None

    @property
    def durable(self) -> bool:
        """Whether what is kept outlives the process."""
        return declared_durability(self._commands)

    async def resolve_checkpoint_id(self, thread_id: str) -> str | None:
        """Return the thread's current checkpoint, or None where that cannot be known."""
        if self._commands is None:
            return None
        return await self._commands.resolve_checkpoint_id(thread_id=thread_id)

    async def record(self, claims: PauseClaims, payload: Any) -> bool:
        """Record exactly the text that was hashed; return whether that is certain.

        A failed write is False and not an error: the pause stands, and is not resumable. Raises
        PayloadBindingError where the request has no key or is not the one that was hashed.
        """
        return await self.record_body(claims, self._binder.request_body(payload))

    async def record_body(self, claims: PauseClaims, body: str) -> bool:
        """Record a request by its text; see `record`."""
        if self._commands is None:
            return False
        if not self._binder.payload_body_matches(claims, body):
            raise PayloadBindingError("the request is not the one that the pause token binds")
        try:
            return await write_record(self._commands, claims, key=payload_key_of(claims), value=body)
        except PayloadBindingError:
            raise
        except Exception:
            # Whatever a backend raises, the text may not be there; the caller is told so.
            return False

    async def load(self, claims: PauseClaims) -> Any:
        """Return the recorded request, proven to be the one that was hashed.

        The text itself is compared first; where a backend has reformatted it, the parsed value's own text is.
        Raises InteractionConfigurationError without checkpoints, PauseCheckpointNotFoundError or
        CheckpointLostError where nothing is recorded, PayloadBindingError for anything else than the request.
        """
        if self._commands is None:
            raise InteractionConfigurationError("a recorded request needs checkpoint commands to be read with")
        text = await self._commands.read_metadata(
            thread_id=claims.thread_id, checkpoint_id=claims.checkpoint_id, key=payload_key_of(claims)
        )
        if text is None:
            raise missing_record("request", durable=self.durable)
        try:
            payload = parse_json(text)
        except ValueError as error:
            raise PayloadBindingError("the recorded request is not JSON") from error
        if not self._binder.payload_body_matches(claims, text):
            self._binder.check_payload(claims, payload)
        return payload


async def write_record(commands: CheckpointCommandPort, claims: PauseClaims, *, key: str, value: str) -> bool:
    """Write one record of a pause; a backend says no by raising, or by returning False."""
    outcome = await commands.write_metadata(
        thread_id=claims.thread_id,
        checkpoint_id=claims.checkpoint_id,
        key=key,
        value=value,
        task_id=claims.run_id,
    )
    return outcome is not False


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
