"""Which network addresses a destination may lead to unless private ones are allowed: public unicast, nothing else.

Two gates, because each misses something: the resolver refuses a name as soon as one of its addresses is not
public, and the socket factory sees every address that is really connected to, IP literals included, which no
resolver is asked about.
"""

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from aiohappyeyeballs import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

# IPv6 ranges that carry an IPv4 address inside or are local by use, though the address registry calls them global.
_TRANSLATED_RANGES = (
    IPv6Network("::/96"),  # IPv4-compatible, RFC 4291 2.5.5.1
    IPv6Network("64:ff9b::/96"),  # NAT64, RFC 6052 2.1
    IPv6Network("64:ff9b:1::/48"),  # local NAT64, RFC 8215
    IPv6Network("2001::/32"),  # Teredo, RFC 4380
    IPv6Network("2002::/16"),  # 6to4, RFC 3056
    IPv6Network("fec0::/10"),  # site-local, RFC 3879
)


class AddressRefusedError(OSError):
    """A destination leads to an address that the settings do not allow; the text names no address and no URL."""

    def __init__(self) -> None:
        super().__init__("the address is not public, and allow_private is not set")


def is_public(address: str) -> bool:
    """Answer whether `address` (an IP literal, with or without a zone) is public unicast, mapped forms included."""
    try:
        parsed: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        elif any(parsed in network for network in _TRANSLATED_RANGES):
            return False
    return parsed.is_global and not parsed.is_multicast and not parsed.is_reserved


def public_socket(addr_info: AddrInfoType) -> socket.socket:
    """Open a socket for a public address; raises AddressRefusedError for any other."""
    family, kind, protocol, _, address = addr_info
    if not is_public(str(address[0])):
        raise AddressRefusedError
    return socket.socket(family=family, type=kind, proto=protocol)


class PublicResolver(AbstractResolver):
    """Resolves names, and refuses one that leads to any address that is not public."""

    def __init__(self, inner: AbstractResolver | None = None) -> None:
        self._inner = inner or ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of `host`; raises AddressRefusedError, or OSError where there are none."""
        found = await self._inner.resolve(host, port, family)
        if not all(is_public(result["host"]) for result in found):
            raise AddressRefusedError
        return found

    async def close(self) -> None:
        """Let go of the resolver underneath."""
        await self._inner.close()
