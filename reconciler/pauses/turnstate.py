"""Where the run stood when it paused, so that another process can go on from there."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from .binding import call_id_of
from .checkpoints import CheckpointCommandPort, missing_record, parse_json, write_record
from .claims import PauseClaims
from .consumption import declared_durability
from .errors import (
    CheckpointLostError,
    InteractionConfigurationError,
    PauseCheckpointNotFoundError,
    PayloadBindingError,
    TurnStateNotRecordedError,
)
from .keys import turn_state_key


@dataclass(frozen=True, slots=True)
class TurnCheckpoint:
    """A turn: its prompt, its messages so far (JSON values), and whose it is.

    The documentation names prompt and messages and no more; the four ids are ours. Whoever pauses may leave
    them empty; the record carries the token's.
    """

    prompt: str = ""
    messages: tuple[Any, ...] = ()
    run_id: str = ""
    session_id: str = ""
    call_id: str = ""
    jti: str = ""

    def encode(self) -> str:
        """Return the turn as JSON; raises TypeError or ValueError where a message is no JSON value."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True, allow_nan=False)

    @classmethod
    def decode(cls, raw: object) -> Self:
        """Return the turn; raises ValueError for anything that `encode` does not write."""
        body = parse_json(raw)
        if not isinstance(body, dict) or body.keys() != {field.name for field in fields(cls)}:
            raise ValueError("not a recorded turn")
        messages = body.pop("messages")
        if not isinstance(messages, list) or not all(isinstance(value, str) for value in body.values()):
            raise ValueError("not a recorded turn")
        return cls(messages=tuple(messages), **body)

    def identity(self) -> dict[str, str]:
        """Return whose turn this is, as far as it says."""
        return {"run_id": self.run_id, "session_id": self.session_id, "call_id": self.call_id, "jti": self.jti}


def _identity_of(claims: PauseClaims) -> dict[str, str]:
    return {
        "run_id": claims.run_id,
        "session_id": claims.session_id,
        "call_id": call_id_of(claims),
        "jti": claims.jti,
    }


class TurnCheckpointStore:
    """Keeps the turn of each pause on a runtime's checkpoints; built empty, it keeps nothing and says so."""

    def __init__(self, commands: CheckpointCommandPort | None = None) -> None:
        self._commands = commands

    @property
    def wired(self) -> bool:
        """Whether there are checkpoints to keep a turn on."""
        return self._commands is not None

    async def record(self, claims: PauseClaims, turn: TurnCheckpoint) -> bool:
        """Record the turn under the token's own id; return whether that is certain. Never raises for a write.

        A turn that says it is another's is not recorded: it could only be refused later.
        """
        if self._commands is None:
            return False
        bound = _identity_of(claims)
        if any(stated and stated != bound[key] for key, stated in turn.identity().items()):
            return False
        try:
            value = TurnCheckpoint(turn.prompt, turn.messages, **bound).encode()
            return await write_record(self._commands, claims, key=turn_state_key(claims.jti), value=value)
        except Exception:
            # Unwritable messages or a failing backend: either way another process could not go on.
            return False

    async def load(self, claims: PauseClaims) -> TurnCheckpoint:
        """Return the turn that this token binds; the record is read anew each time.

        Raises InteractionConfigurationError without checkpoints, PauseCheckpointNotFoundError or
        CheckpointLostError where nothing is recorded, PayloadBindingError where it cannot be read, and
        TurnStateNotRecordedError where it is another turn's.
        """
        if self._commands is None:
            raise InteractionConfigurationError("a recorded turn needs checkpoint commands to be read with")
        text = await self._commands.read_metadata(
            thread_id=claims.thread_id, checkpoint_id=claims.checkpoint_id, key=turn_state_key(claims.jti)
        )
        if text is None:
            raise missing_record("turn", durable=declared_durability(self._commands))
        try:
            turn = TurnCheckpoint.decode(text)
        except ValueError as error:
            raise PayloadBindingError("the recorded turn cannot be read") from error
        if turn.identity() != _identity_of(claims):
            raise TurnStateNotRecordedError("the recorded turn is not the one that the pause token binds")
        return turn

    async def find(self, claims: PauseClaims) -> TurnCheckpoint | None:
        """Return the turn, or None where none was kept; a turn that is unreadable or another's still raises."""
        try:
            return await self.load(claims)
        except (CheckpointLostError, InteractionConfigurationError, PauseCheckpointNotFoundError):
            return None
