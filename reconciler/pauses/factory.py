"""One call that puts a working capability together."""

from collections.abc import Iterable
from typing import Any

from .capability import BindingResolver, HumanInteractionCapability, TokenDecoder, TokenEncoder
from .consumption import ConsumptionPort, InMemoryConsumption
from .errors import InteractionConfigurationError
from .registrations import InteractionRegistration, ask_user_registration
from .tokens import EnvelopeSignerPort
from .ttl import DEFAULT_TTL, TTLPolicy


def human_interaction(
    *,
    signer: EnvelopeSignerPort,
    binding: BindingResolver,
    encode_token: TokenEncoder,
    decode_token: TokenDecoder | None = None,
    registrations: Iterable[InteractionRegistration] | None = None,
    ttl: TTLPolicy | None = None,
    consumption: ConsumptionPort | None = None,
    **options: Any,
) -> HumanInteractionCapability:
    """Return a capability with the documented defaults; `options` go to HumanInteractionCapability.compile.

    Without registrations it asks questions (`ask_user`); without a lifetime, DEFAULT_TTL; without a consumption
    and without a `ledger`, redemptions are kept in memory. A ledger is a record of redemptions itself, so none
    is added beside it. Raises InteractionConfigurationError for an empty list of registrations.
    """
    chosen = (ask_user_registration(),) if registrations is None else tuple(registrations)
    if not chosen:
        raise InteractionConfigurationError("a capability without an interaction has nothing to do")
    if consumption is None and options.get("ledger") is None:
        consumption = InMemoryConsumption()
    return HumanInteractionCapability.compile(
        chosen,
        signer=signer,
        ttl=DEFAULT_TTL if ttl is None else ttl,
        consumption=consumption,
        binding=binding,
        encode_token=encode_token,
        decode_token=decode_token,
        **options,
    )
