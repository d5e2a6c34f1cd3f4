"""What a ledger's rows prove about one pause: a pure table of cases."""

from dataclasses import dataclass
from datetime import timedelta

from reconciler.states import AttentionState, Evidence, Kind

ASK_USER = "ask_user"


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A token's issuance and redemption as one statement read them; times are epoch seconds.

    `issued` and `consumed` are (scope_hash, name), None where there is no such row.
    """

    issued: tuple[str, str] | None
    expires_at: float | None = None
    consumed: tuple[str, str] | None = None
    is_revoked: bool = False

    @property
    def is_contradictory(self) -> bool:
        """Answer whether the ledger says of the redemption what its issuance does not: a person must look."""
        return self.consumed is not None and self.consumed != self.issued


def state_of(row: LedgerRow, *, now: float, grace: timedelta) -> tuple[AttentionState, Evidence]:
    """Return what the row proves at `now`, an instant that is not after the reading.

    A redemption wins over everything: it was made in time whatever the clock says now. Between the signed expiry and
    the end of the grace nothing is proven, since a redemption may still be committing. What is missing or contradicts
    itself proves nothing, ever.
    """
    if row.issued is None or row.expires_at is None or row.is_contradictory:
        return AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE
    if row.consumed is not None:
        return AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE
    if row.is_revoked:
        return AttentionState.CANCELLED, Evidence.DURABLE_CLOSURE
    if now <= row.expires_at:
        return AttentionState.ACTIVE, Evidence.CURRENT_ACTION
    if now > row.expires_at + grace.total_seconds():
        return AttentionState.EXPIRED, Evidence.DURABLE_CLOSURE
    return AttentionState.UNAVAILABLE, Evidence.INCOMPLETE_QUERY


def kind_of(name: str) -> Kind:
    """Return the kind of request; an interaction's own name may be private and goes no further."""
    return Kind.USER_INPUT if name == ASK_USER else Kind.AGENT_INPUT
