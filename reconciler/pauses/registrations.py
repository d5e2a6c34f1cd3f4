"""Which interactions there are: each has a name, a shape of its request and a shape of its answer."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, Self, runtime_checkable

from pydantic import ValidationError

from .ask_user import AskUserPayload, AskUserResponse
from .claims import ASK_USER
from .errors import DuplicateInteractionError, InteractionRegistrationError, UnknownInteractionError


@runtime_checkable
class InteractionSchema(Protocol):
    """Anything that validates: a pydantic model class, or an object with the same method."""

    def model_validate(self, obj: Any, /) -> Any:
        """Return the validated value, or raise."""
        ...


MAX_NAME_CHARS = 200
"""The longest name of an interaction (ours)."""

_MISFITS_SHOWN = 3

ResponseCheck = Callable[[Any, Any], Any]
"""`(response, payload)`: raises, or returns False, where the answer does not fit the question; may be async."""


@dataclass(frozen=True, slots=True)
class InteractionRegistration:
    """One interaction.

    `cross_scope_allowed` alone lets another tenant's scope redeem its tokens, and is off. `metadata` is the
    deployment's own and is kept as a read-only copy. Raises InteractionRegistrationError where a name, a
    shape or a check cannot be used: found when it is written down, not when a person answers.
    """

    name: str
    payload_schema: InteractionSchema
    response_schema: InteractionSchema
    validate_response: ResponseCheck | None = None
    cross_scope_allowed: bool = False
    built_in: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not 0 < len(self.name) <= MAX_NAME_CHARS:
            raise InteractionRegistrationError(f"an interaction's name is 1 to {MAX_NAME_CHARS} characters of text")
        for part in ("payload_schema", "response_schema"):
            if not callable(getattr(getattr(self, part), "model_validate", None)):
                raise InteractionRegistrationError(f"{self.name!r}: its {part} cannot validate (no model_validate)")
        if self.validate_response is not None and not callable(self.validate_response):
            raise InteractionRegistrationError(f"{self.name!r}: its validate_response cannot be called")
        if not isinstance(self.cross_scope_allowed, bool):
            raise InteractionRegistrationError(f"{self.name!r}: cross_scope_allowed is true or false")
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    @classmethod
    def ask_user(
        cls,
        *,
        payload_schema: InteractionSchema = AskUserPayload,
        response_schema: InteractionSchema = AskUserResponse,
        validate_response: ResponseCheck | None = None,
        cross_scope_allowed: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return the built-in interaction: a question to a person."""
        return cls(
            name=ASK_USER,
            payload_schema=payload_schema,
            response_schema=response_schema,
            validate_response=validate_response,
            cross_scope_allowed=cross_scope_allowed,
            built_in=True,
            metadata=metadata or {},
        )


def ask_user_registration(cross_scope_allowed: bool = False) -> InteractionRegistration:
    """Return the built-in interaction, with the documented shapes."""
    return InteractionRegistration.ask_user(cross_scope_allowed=cross_scope_allowed)


class InteractionRegistry:
    """The interactions of one capability, by name."""

    def __init__(self, registrations: Iterable[InteractionRegistration] = ()) -> None:
        self._by_name: dict[str, InteractionRegistration] = {}
        for registration in registrations:
            self.register(registration)

    def register(self, registration: InteractionRegistration) -> None:
        """Add one; raises DuplicateInteractionError where its name is taken, and keeps the first."""
        if registration.name in self._by_name:
            raise DuplicateInteractionError(f"two registrations claim the name {registration.name!r}")
        self._by_name[registration.name] = registration

    def get(self, name: str) -> InteractionRegistration:
        """Return the registration; raises UnknownInteractionError (a KeyError) where there is none."""
        try:
            return self._by_name[name]
        except KeyError:
            raise UnknownInteractionError(f"no interaction is registered under the name {name!r}") from None

    def names(self) -> tuple[str, ...]:
        """Return the registered names, sorted."""
        return tuple(sorted(self._by_name))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._by_name)


def describe_misfit(error: Exception) -> str:
    """Return where and how a value failed its shape, without any of the value: it may be a question or an answer."""
    if not isinstance(error, ValidationError):
        return type(error).__name__
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        f"{'.'.join(str(part) for part in misfit['loc']) or 'value'}: {misfit['type']}"
        for misfit in found[:_MISFITS_SHOWN]
    )
