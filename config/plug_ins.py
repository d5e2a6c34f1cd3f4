"""Finds the module that implements a type named in the configuration: a built-in one, or an installed plug-in's.

Channels and sources are named alike: a `type` in a table, an entry-point group for plug-ins, a module that exports
`TYPE`, `Options` (pydantic, unknown keys forbidden) and `build`. Built-ins cannot be overridden.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from config.errors import SettingsError

_EXPORTS = ("TYPE", "Options", "build")


@dataclass(frozen=True, slots=True)
class PlugIns:
    """The types of one kind: `noun` names it in errors, `built_in` maps a type to its module's name."""

    noun: str
    group: str
    built_in: Mapping[str, str]

    def find(self, name: str, *, installed: Iterable[EntryPoint] | None = None) -> ModuleType:
        """Return the module of type `name`; raises SettingsError (one line) that lists what there is.

        `installed` stands for the environment's entry points of the group.
        """
        found = list(entry_points(group=self.group) if installed is None else installed)
        for entry_point in found:
            if entry_point.name in self.built_in:
                raise SettingsError(
                    f"plug-in {entry_point.value} claims the built-in {self.noun} type {entry_point.name!r}: "
                    "uninstall it, or have it renamed"
                )
        if name in self.built_in:
            return import_module(self.built_in[name])
        matching = [entry_point for entry_point in found if entry_point.name == name]
        if not matching:
            raise SettingsError(self._unknown(name, [*self.built_in, *(entry_point.name for entry_point in found)]))
        if len({entry_point.value for entry_point in matching}) > 1:
            raise SettingsError(f"{self.noun} type {name!r} is claimed by several plug-ins: uninstall all but one")
        return self._load(matching[0])

    def _load(self, entry_point: EntryPoint) -> ModuleType:
        try:
            module = entry_point.load()
        except Exception as error:  # a stranger's module may raise anything while it is imported
            raise SettingsError(f"plug-in {entry_point.value} cannot be loaded: {type(error).__name__}") from error
        missing = [attribute for attribute in _EXPORTS if not hasattr(module, attribute)]
        if missing:
            raise SettingsError(f"plug-in {entry_point.value} is no {self.noun} type: it has no {', '.join(missing)}")
        if entry_point.name != module.TYPE:
            raise SettingsError(f"plug-in {entry_point.value} calls itself {module.TYPE!r}, not {entry_point.name!r}")
        if module.Options.model_config.get("extra") != "forbid":
            raise SettingsError(f"plug-in {entry_point.value}: its Options must forbid unknown keys")
        assert isinstance(module, ModuleType), "an entry point of this group names a module"
        return module

    def _unknown(self, name: str, there_are: list[str]) -> str:
        near = get_close_matches(name, there_are, n=1)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        return f"no {self.noun} type is called {name!r}; {hint}there are: {', '.join(sorted(there_are))}"
