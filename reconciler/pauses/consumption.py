"""Who redeemed a token first: decided by one conditional write and by nothing else.

Nothing above this module can tell a ledger from a plain conditional-write store.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .claims import ASK_USER
from .errors import ConsumptionDurabilityError, InteractionConfigurationError


@dataclass(frozen=True, slots=True)
class ConsumptionRecord:
    """One redemption: ids only, no request and no answer. `consumed_at` is epoch seconds."""

    jti: str
    scope_hash: str
    name: str = ASK_USER
    consumed_at: float = 0.0


class ConsumptionPort(Protocol):
    """The one question asked of a store: was it us?"""

    @property
    def durable(self) -> bool:
        """Whether a redemption outlives the process."""
        ...

    async def claim(self, jti: str, *, scope_hash: str, name: str) -> bool:
        """Redeem the token, atomically: of any number of concurrent callers exactly one gets True.

        Anything raised means that nothing was decided; the caller may try again.
        """
        ...


class ConditionalWritePort(Protocol):
    """A store that can write a record only where there is none; its only verb here."""

    async def insert_if_absent(self, key: str, record: object) -> bool:
        """Write and return True where `key` was free; else change nothing and return False. Atomic."""
        ...


def declared_durability(backend: object) -> bool:
    """Return whether a backend says that it outlives the process; silence means that it does not."""
    return getattr(backend, "durable", None) is True


class ConditionalWriteConsumption:
    """Redemption on any store with `insert_if_absent`: one write, no read before it."""

    def __init__(
        self,
        backend: ConditionalWritePort,
        *,
        durable: bool | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not callable(getattr(backend, "insert_if_absent", None)):
            raise InteractionConfigurationError("the consumption backend lacks insert_if_absent")
        self._backend = backend
        self._durable = declared_durability(backend) if durable is None else durable
        self._clock = clock

    @property
    def durable(self) -> bool:
        """What was stated, else what the backend declares."""
        return self._durable

    async def claim(self, jti: str, *, scope_hash: str, name: str) -> bool:
        """Redeem the token; True for exactly one caller, ever."""
        record = ConsumptionRecord(jti=jti, scope_hash=scope_hash, name=name, consumed_at=self._clock())
        return bool(await self._backend.insert_if_absent(jti, record))


class InMemoryConsumption:
    """Redemptions of this process, forgotten with it: for library use beside checkpoints that are forgotten too."""

    durable = False

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._records: dict[str, ConsumptionRecord] = {}
        self._lock = asyncio.Lock()
        self._clock = clock

    async def claim(self, jti: str, *, scope_hash: str, name: str) -> bool:
        """Redeem the token; True for exactly one caller in this process."""
        record = ConsumptionRecord(jti=jti, scope_hash=scope_hash, name=name, consumed_at=self._clock())
        async with self._lock:
            return self._records.setdefault(jti, record) is record

    def clear(self) -> None:
        """Forget every redemption: for fixtures only, since every live token becomes good again."""
        self._records.clear()


def require_durable_consumption(consumption: ConsumptionPort, checkpoints_durable: bool) -> None:
    """Raise ConsumptionDurabilityError where pauses outlive the process and redemptions do not.

    After a restart such a deployment would accept a spent token again. Both volatile is fine: the pause is
    forgotten with its redemption.
    """
    if checkpoints_durable and not consumption.durable:
        raise ConsumptionDurabilityError("durable checkpoints need a durable record of redeemed tokens")


def redemption_is_shared(consumption: ConsumptionPort) -> bool:
    """Return whether other processes could see a redemption: anything but the in-memory record might be shared."""
    return not isinstance(consumption, InMemoryConsumption)
