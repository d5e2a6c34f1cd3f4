"""The two kinds of table among the settings: closed ones of the core, and open ones that a `type` owns."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict


class SettingsTable(BaseModel):
    """What all the tables have in common: an unknown key is an error, and nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TypedTable(BaseModel):
    """A table with a `type`; the keys that are not of the core are its options."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def options(self) -> Mapping[str, Any]:
        """Return what the type's own module validates."""
        return self.model_extra or {}
