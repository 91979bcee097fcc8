"""Which addresses names of hosts stand for now."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterable
from dataclasses import replace

from benchpool_scheduler.contract.forwarding import Peers, Proxies

log = logging.getLogger(__name__)

AGAIN_S = 10.0
"""How often names are looked up again: a proxy that comes back has another address."""


class ProxyAddresses:
    """Whose word counts, with what the names among them stand for now.

    Where a name cannot be looked up, whom it stood for before is believed no more.
    """

    def __init__(self, proxies: Proxies) -> None:
        self._asked = proxies
        self.now = proxies

    async def look_up(self) -> None:
        """Look all names up."""
        hub = await _resolved(self._asked.hub)
        self.now = replace(self._asked, hub=hub, before=await _resolved(self._asked.before))

    async def keep(self) -> None:
        """Look names up now and again, until cancelled; at once done where there are none."""
        while self._asked.hub.names or self._asked.before.names:
            await self.look_up()
            await asyncio.sleep(AGAIN_S)


async def _resolved(peers: Peers) -> Peers:
    return peers.with_addresses([one for name in peers.names for one in await _addresses(name)])


async def _addresses(name: str) -> Iterable[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError as failed:
        log.warning("the proxy %s cannot be looked up (%s): its word is not taken", name, failed)
        return ()
    return {str(address[0]).partition("%")[0] for *_, address in found}
