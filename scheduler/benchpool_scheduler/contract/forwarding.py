"""Source address of a request from the headers of trusted proxies, without I/O.

Each proxy appends the address of its client to ``X-Forwarded-For``. The last entry comes from the
nearest proxy; earlier entries may be forged. An entry is trusted only if all proxies after it are
ours. ``X-Real-Ip`` and ``Forwarded`` are ignored.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from benchpool_scheduler.errors import InvalidInput

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LOOPBACK = "127.0.0.0/8,::1"
_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*\.?")
_ENCRYPTED = {"https": True, "wss": True, "http": False, "ws": False}


@dataclass(frozen=True, slots=True)
class Peers:
    """Set of peers, by network or host name.

    Attributes:
        networks: Known networks.
        names: Names of hosts whose addresses change. They match no address until they are resolved
            (``with_addresses``).
    """

    networks: tuple[Network, ...] = ()
    names: tuple[str, ...] = ()

    def holds(self, address: str) -> bool:
        """Return whether an address is in one of the networks.

        >>> listed("10.0.0.0/24,::1").holds("::ffff:10.0.0.7"), listed("10.0.0.1").holds("x")
        (True, False)
        """
        known = _address(address)
        return known is not None and any(known in network for network in self.networks)

    def with_addresses(self, addresses: Iterable[str]) -> Peers:
        """Return a copy with the resolved addresses of the names added to the networks."""
        found = tuple(ipaddress.ip_network(one) for one in addresses)
        return replace(self, networks=(*self.networks, *found))


@dataclass(frozen=True, slots=True)
class Proxies:
    """Trusted proxies.

    Attributes:
        hub: Peers from which the Hub's own proxy connects.
        before: Proxies before it, such as an ingress or an authenticating proxy.
    """

    hub: Peers
    before: Peers = Peers()


@dataclass(frozen=True, slots=True)
class RequestSource:
    """Source of a request.

    Attributes:
        address: Last address that a trusted proxy reported.
        scheme: ``http`` or ``https``, as the client at that address used it.
    """

    address: str
    scheme: str


def listed(words: str | Iterable[str], field: str = "proxies") -> Peers:
    """Parse a setting of addresses, networks and names, separated by commas.

    Raises:
        InvalidInput: A word is none of these. The message names it.

    >>> listed("10.0.0.0/8, proxy.example.org")
    Peers(networks=(IPv4Network('10.0.0.0/8'),), names=('proxy.example.org',))
    """
    networks: list[Network] = []
    names: list[str] = []
    for word in words.split(",") if isinstance(words, str) else words:
        one = word.strip()
        if not one:
            continue
        try:
            networks.append(ipaddress.ip_network(one))
        except ValueError as wrong:
            if not _is_name(one):
                raise InvalidInput(
                    f"{one[:100]!r} is not an address, network or name of a proxy ({wrong}). Give "
                    "for example 10.0.0.7, 10.0.0.0/24 or proxy.example.org.",
                    field=field,
                ) from wrong
            names.append(one)
    return Peers(tuple(networks), tuple(names))


def origin(
    peer: str,
    scheme: str,
    forwarded_for: Sequence[str],
    forwarded_proto: Sequence[str],
    proxies: Proxies,
) -> RequestSource:
    """Return the source of a request.

    Args:
        peer: Peer address of the connection.
        scheme: Scheme of the connection itself.
        forwarded_for: All headers ``X-Forwarded-For``, in order.
        forwarded_proto: All headers ``X-Forwarded-Proto``, in order.
        proxies: The trusted proxies.

    >>> ours = Proxies(listed("127.0.0.1"), listed("10.0.0.5"))
    >>> origin("127.0.0.1", "http", ["6.6.6.6, 192.0.2.1,10.0.0.5"], ["https,http"], ours)
    RequestSource(address='192.0.2.1', scheme='https')
    >>> origin("192.0.2.9", "http", ["6.6.6.6"], ["https"], ours)
    RequestSource(address='192.0.2.9', scheme='http')
    """
    if not (proxies.hub.holds(peer) or proxies.before.holds(peer)):
        return RequestSource(_plain(peer), scheme)
    address, hops = _plain(peer), 0
    for entry in reversed(_entries(forwarded_for)):
        hop = _address(entry)
        if hop is None:
            break  # not an address: the proxy that appended it is the last known source
        address, hops = str(hop), hops + 1
        if not proxies.before.holds(address):
            break
    protos = _entries(forwarded_proto)
    if hops and protos:
        encrypted = _ENCRYPTED.get(protos[-min(hops, len(protos))].lower())
        if encrypted is not None:
            scheme = "https" if encrypted else "http"
    return RequestSource(address, scheme)


def _entries(headers: Sequence[str]) -> list[str]:
    return [entry.strip() for header in headers for entry in header.split(",")]


def _address(text: str) -> Address | None:
    try:
        known = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = known.ipv4_mapped if isinstance(known, ipaddress.IPv6Address) else None
    return mapped or known


def _plain(peer: str) -> str:
    known = _address(peer)
    return peer if known is None else str(known)


def _is_name(word: str) -> bool:
    """Return whether a word may be a host name. Digits and dots alone are a mistyped address."""
    return bool(_NAME.fullmatch(word)) and any(sign.isalpha() for sign in word)
