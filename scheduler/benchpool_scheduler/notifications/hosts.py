"""Hosts that a webhook may reach: the scheduler calls them from inside the site's network."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Resolve = Callable[[str, int], Awaitable[Collection[str]]]
"""Function that returns the addresses of a host. Errors: OSError."""

HOLDS_IPV4 = (
    IPv6Network("64:ff9b::/96"),  # NAT64, RFC 6052
    IPv6Network("::ffff:0:0:0/96"),  # SIIT, RFC 2765
    IPv6Network("::/96"),  # IPv4-compatible, RFC 4291
)
"""IPv6 networks whose last 32 bits are the IPv4 address that is reached."""
OF_A_SITE = (
    IPv6Network("fec0::/10"),  # site-local, RFC 3879
    IPv6Network("64:ff9b:1::/48"),  # translation inside a site, RFC 8215
    IPv4Network("192.88.99.0/24"),  # relays of 6to4, RFC 7526
)
"""Networks that lead into a site, or may, although Python calls them global."""


class UnsafeHost(Exception):
    """The host is, or may be, in the site's own network."""


async def address_of(host: str, port: int, named: Collection[str], ask: Resolve) -> str:
    """Return the address for a connection; it must be used without another lookup.

    Args:
        named: Hosts that are allowed in any network.

    Errors: UnsafeHost, OSError.
    """
    found = list(await ask(host, port))
    if not found:
        raise OSError("its name has no address")
    if host not in named and not all(map(public, found)):
        raise UnsafeHost(
            "its host is in a network of the site, and the administrator has not listed it"
        )
    return found[0]


def public(address: str) -> bool:
    """Return whether an address belongs to the public Internet.

    >>> public("93.184.215.14"), public("10.1.2.3"), public("::ffff:127.0.0.1"), public("fe80::1%2")
    (True, False, False, False)
    """
    found = _inner(ip_address(address.partition("%")[0]))
    of_a_site = any(found in network for network in OF_A_SITE)
    return found.is_global and not found.is_multicast and not of_a_site


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address represents, else the address."""
    if isinstance(address, IPv4Address):
        return address
    if any(address in network for network in HOLDS_IPV4):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)
