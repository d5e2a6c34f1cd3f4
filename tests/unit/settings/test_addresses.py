"""Addresses to listen at."""

import pytest

from config.addresses import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8321", Address("127.0.0.1", 8321)),
        ("[::1]:8321", Address("::1", 8321)),
        ("localhost:0", Address("localhost", 0)),
    ],
)
def test_address_is_read_and_written_back(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize("text", ["", "8321", ":8321", "::1:8321", "localhost", "a:65536", "http://a:80", "a b:80"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="an address is written like"):
        parse_address(text)
