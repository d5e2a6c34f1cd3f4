"""How a place to listen at is written: HOST:PORT, with an IPv6 host in brackets."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator

_FORM = re.compile(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^\s:/\[\]]+)):([0-9]{1,5})")
_HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a TCP port; port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read `127.0.0.1:8321`, `[::1]:8321` or `localhost:8321`; raises ValueError (one line)."""
    match = _FORM.fullmatch(text)
    if match is None or int(match[3]) > _HIGHEST_PORT:
        raise ValueError('an address is written like "127.0.0.1:8321" or "[::1]:8321"')
    return Address(match[1] or match[2], int(match[3]))


def _from_setting(value: object) -> Address:
    return value if isinstance(value, Address) else parse_address(str(value))


# The type of every address among the settings.
ListenAddress = Annotated[Address, BeforeValidator(_from_setting)]
