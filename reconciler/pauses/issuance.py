"""What was issued, what of it was redeemed, and the horizon: the records behind a ledger."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from .claims import ASK_USER
from .consumption import ConditionalWritePort, declared_durability
from .drain import RetirementHorizon
from .errors import InteractionConfigurationError


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token that left the signer: times in epoch seconds, and no session, run or call.

    `vector_hash` is the signing pin's, where it has one.
    """

    jti: str
    scope_hash: str
    name: str
    issued_at: float
    expires_at: float
    legacy_pinned: bool = False
    vector_hash: str = ""


@dataclass(frozen=True, slots=True)
class TokenConsumption:
    """The redemption of a token by whoever won it; losers leave no record."""

    jti: str
    scope_hash: str
    name: str = ASK_USER
    consumed_at: float = 0.0


@runtime_checkable
class IssuanceRecords(Protocol):
    """The three records of a ledger, each written once."""

    durable: bool
    shared: bool

    async def add_issued(self, token: IssuedToken) -> bool:
        """Record an issuance; False where the id is taken."""
        ...

    async def issued(self, jti: str) -> IssuedToken | None:
        """Return the recorded issuance, if any."""
        ...

    async def claim_consumption(self, consumption: TokenConsumption) -> bool:
        """Record the redemption; True for exactly one caller. Atomic."""
        ...

    async def unconsumed(self) -> list[IssuedToken]:
        """Return everything issued and not redeemed, in no order."""
        ...

    async def horizon(self) -> RetirementHorizon | None:
        """Return the standing horizon, if any."""
        ...

    async def claim_horizon(self, horizon: RetirementHorizon) -> tuple[RetirementHorizon, bool]:
        """Record the horizon where none stands; return the standing one, and whether it is this call's. Atomic."""
        ...


class InProcessIssuanceRecords:
    """Three dicts, and no claim to be more: gone with the process, seen by no other."""

    durable = False
    shared = False

    def __init__(self) -> None:
        self._issued: dict[str, IssuedToken] = {}
        self._consumed: dict[str, TokenConsumption] = {}
        self._horizons: dict[str, RetirementHorizon] = {}

    async def add_issued(self, token: IssuedToken) -> bool:
        """Record an issuance; False where the id is taken."""
        return self._issued.setdefault(token.jti, token) is token

    async def issued(self, jti: str) -> IssuedToken | None:
        """Return the recorded issuance, if any."""
        return self._issued.get(jti)

    async def claim_consumption(self, consumption: TokenConsumption) -> bool:
        """Record the redemption; True for exactly one caller in this process."""
        return self._consumed.setdefault(consumption.jti, consumption) is consumption

    async def unconsumed(self) -> list[IssuedToken]:
        """Return everything issued and not redeemed."""
        return [token for jti, token in self._issued.items() if jti not in self._consumed]

    async def horizon(self) -> RetirementHorizon | None:
        """Return the standing horizon, if any."""
        return self._horizons.get(_HORIZON_KEY)

    async def claim_horizon(self, horizon: RetirementHorizon) -> tuple[RetirementHorizon, bool]:
        """Record the horizon where none stands."""
        standing = self._horizons.setdefault(_HORIZON_KEY, horizon)
        return standing, standing is horizon


class IssuanceRecordBackendPort(ConditionalWritePort, Protocol):
    """A conditional-write store that can also be read back and listed.

    The documentation names `insert_if_absent` and leaves the other verbs open; `read` and `scan` are ours.
    """

    async def read(self, key: str) -> Any:
        """Return what was written under the key, or None."""
        ...

    async def scan(self, prefix: str) -> list[Any]:
        """Return what was written under every key that begins so, in any order."""
        ...


BACKEND_VERBS = ("insert_if_absent", "read", "scan")
"""What a backend must be able to do to hold issuance records."""

_ISSUED_PREFIX = "issued:"
_CONSUMED_PREFIX = "consumed:"
_HORIZON_KEY = "horizon"


class BackendIssuanceRecords:
    """The records on any store with BACKEND_VERBS.

    `durable` is what is stated, else what the backend declares (silence is volatile). `shared` is true unless
    the backend itself says otherwise: that is what a backend is for.
    """

    def __init__(self, backend: IssuanceRecordBackendPort, durable: bool | None = None) -> None:
        lacking = [verb for verb in BACKEND_VERBS if not callable(getattr(backend, verb, None))]
        if lacking:
            raise InteractionConfigurationError(f"the issuance backend lacks {', '.join(lacking)}")
        self._backend = backend
        self.durable = declared_durability(backend) if durable is None else durable
        self.shared = getattr(backend, "shared", True) is True

    async def add_issued(self, token: IssuedToken) -> bool:
        """Record an issuance; False where the id is taken."""
        return bool(await self._backend.insert_if_absent(_ISSUED_PREFIX + token.jti, token))

    async def issued(self, jti: str) -> IssuedToken | None:
        """Return the recorded issuance, if any."""
        found: IssuedToken | None = await self._backend.read(_ISSUED_PREFIX + jti)
        return found

    async def claim_consumption(self, consumption: TokenConsumption) -> bool:
        """Record the redemption; True for exactly one caller."""
        return bool(await self._backend.insert_if_absent(_CONSUMED_PREFIX + consumption.jti, consumption))

    async def unconsumed(self) -> list[IssuedToken]:
        """Return everything issued and not redeemed.

        The issuances are read first: a token redeemed between the two reads is then left out, never one that
        is redeemed and still listed.
        """
        issued: list[IssuedToken] = await self._backend.scan(_ISSUED_PREFIX)
        consumed = {consumption.jti for consumption in await self._backend.scan(_CONSUMED_PREFIX)}
        return [token for token in issued if token.jti not in consumed]

    async def horizon(self) -> RetirementHorizon | None:
        """Return the standing horizon, if any."""
        found: RetirementHorizon | None = await self._backend.read(_HORIZON_KEY)
        return found

    async def claim_horizon(self, horizon: RetirementHorizon) -> tuple[RetirementHorizon, bool]:
        """Record the horizon where none stands.

        Raises InteractionConfigurationError where the backend neither takes the record nor has one.
        """
        if await self._backend.insert_if_absent(_HORIZON_KEY, horizon):
            return horizon, True
        standing = await self.horizon()
        if standing is None:
            raise InteractionConfigurationError("the issuance backend refuses a horizon and has none")
        return standing, False
