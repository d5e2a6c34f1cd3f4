"""How a value is written in the file, where its type alone does not say it; for the page about the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Written:
    """Stands in an `Annotated` type: `form` is what the page shows in place of the type's own name."""

    form: str
