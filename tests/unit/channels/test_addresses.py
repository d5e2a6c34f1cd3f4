"""Only public unicast addresses pass, in whatever form a private one is dressed."""

import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from worker.channels.addresses import AddressRefusedError, PublicResolver, is_public, public_socket

REFUSED = [
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "localhost",
    "",
    "0x7f000001",
    "2130706433",
]


@pytest.mark.parametrize("address", REFUSED)
def test_address_that_is_not_public_is_refused(address: str) -> None:
    assert not is_public(address)
    with pytest.raises(AddressRefusedError):
        public_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, 80)))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8"])
def test_public_address_passes(address: str) -> None:
    assert is_public(address)


class Answers(AbstractResolver):
    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self.addresses
        ]

    async def close(self) -> None:
        pass


async def test_name_with_one_private_address_is_refused_as_a_whole() -> None:
    with pytest.raises(AddressRefusedError):
        await PublicResolver(Answers("8.8.8.8", "10.0.0.1")).resolve("mixed.example")

    assert len(await PublicResolver(Answers("8.8.8.8")).resolve("fine.example")) == 1
