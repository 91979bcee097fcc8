"""Current addresses of the host names of proxies."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterable
from dataclasses import replace

from benchpool_scheduler.contract.forwarding import Peers, Proxies

log = logging.getLogger(__name__)

AGAIN_S = 10.0
"""Interval of address lookups, in seconds. A restarted proxy may have a new address."""


class ProxyAddresses:
    """Trusted proxies with the current addresses of their host names.

    If a name cannot be resolved, its earlier address is no longer trusted.
    """

    def __init__(self, proxies: Proxies) -> None:
        self._asked = proxies
        self.now = proxies

    async def look_up(self) -> None:
        """Resolve all names."""
        hub = await _resolved(self._asked.hub)
        self.now = replace(self._asked, hub=hub, before=await _resolved(self._asked.before))

    async def keep(self) -> None:
        """Resolve the names at intervals, until cancelled. Return immediately without names."""
        while self._asked.hub.names or self._asked.before.names:
            await self.look_up()
            await asyncio.sleep(AGAIN_S)


async def _resolved(peers: Peers) -> Peers:
    return peers.with_addresses([one for name in peers.names for one in await _addresses(name)])


async def _addresses(name: str) -> Iterable[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError as failed:
        log.warning("the proxy %s cannot be looked up (%s) and is not trusted", name, failed)
        return ()
    return {str(address[0]).partition("%")[0] for *_, address in found}
