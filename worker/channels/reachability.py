"""Whether an HTTP provider can be connected to at all, found out without telling it anything."""

import asyncio
import socket
from contextlib import closing

from aiohttp.resolver import ThreadedResolver
from yarl import URL

from config.errors import DependencyError, SettingsError
from worker.channels.addresses import AddressRefusedError, is_public
from worker.channels.http_sessions import CONNECT_SECONDS


async def check_reachable(url: str, *, allow_private: bool) -> str:
    """Connect to the host of `url` and hang up; return one line, which names the host only.

    Raises SettingsError where the address is not allowed, DependencyError where nobody answers.
    """
    parsed = URL(url)
    host, port = parsed.host or "", parsed.port or 0
    where = f"{host}:{port}"
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await _connect(host, port, allow_private=allow_private)
    except AddressRefusedError as error:
        raise SettingsError(f"{where}: {error}") from None
    except (OSError, TimeoutError):
        raise DependencyError(f"{where} cannot be connected to") from None
    return f"{where} accepts connections"


async def _connect(host: str, port: int, *, allow_private: bool) -> None:
    found = await ThreadedResolver().resolve(host, port, socket.AF_UNSPEC)
    if not allow_private and not all(is_public(result["host"]) for result in found):
        raise AddressRefusedError
    address = found[0]
    with closing(socket.socket(address["family"], socket.SOCK_STREAM)) as connection:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, (address["host"], port))
