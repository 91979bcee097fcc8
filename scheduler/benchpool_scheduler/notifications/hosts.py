"""Which hosts a webhook may reach: the scheduler calls them, from inside the site's network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

Resolve = Callable[[str, int], Awaitable[Collection[str]]]
"""Returns the addresses of a host. Errors: OSError."""

NAT64 = IPv6Network("64:ff9b::/96")


class UnsafeHost(Exception):
    """The host is, or may be, in the site's own network."""


async def resolve(host: str, port: int) -> Collection[str]:
    """Ask the system. Errors: OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=1)
    return tuple(str(address[0]) for *_, address in found)


async def address_of(host: str, port: int, named: Collection[str], ask: Resolve = resolve) -> str:
    """Return the address to connect to; it is to be used as it is, not asked for again.

    Args:
        named: Hosts that may be anywhere.

    Errors: UnsafeHost, OSError.
    """
    found = list(await ask(host, port))
    if not found:
        raise OSError("its name has no address")
    if host not in named and not all(map(public, found)):
        raise UnsafeHost(
            "its host is in a network of the site, and the administrator has not named it"
        )
    return found[0]


def public(address: str) -> bool:
    """Tell whether an address is one of the public Internet.

    >>> public("93.184.215.14"), public("10.1.2.3"), public("::ffff:127.0.0.1"), public("fe80::1%2")
    (True, False, False, False)
    """
    found = _inner(ip_address(address.partition("%")[0]))
    return found.is_global and not found.is_multicast


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address stands for, if it does."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)
