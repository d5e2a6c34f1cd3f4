"""How long a pause token may live."""

from dataclasses import dataclass

from .errors import TokenTTLError


@dataclass(frozen=True, slots=True)
class TTLPolicy:
    """The lifetime of a token where none is asked for, and the longest that may be asked for; both in seconds."""

    default_seconds: float
    maximum_seconds: float

    def resolve(self, ttl_seconds: float | None = None) -> float:
        """Return the lifetime to mint with.

        Raises TokenTTLError for a lifetime that is not above zero and at most the maximum (NaN is neither);
        a lifetime is never clamped, since whoever asked would believe in another expiry than the signed one.
        """
        wanted = self.default_seconds if ttl_seconds is None else ttl_seconds
        if not 0 < wanted <= self.maximum_seconds:
            raise TokenTTLError(f"a lifetime of {wanted} s is outside of 0 to {self.maximum_seconds} s")
        return wanted


DEFAULT_TTL = TTLPolicy(default_seconds=600, maximum_seconds=86_400)
"""Ten minutes, at most a day: the published relative's defaults; the documentation gives no figures."""
