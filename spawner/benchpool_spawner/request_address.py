"""Where a request to the Hub came from.

The Hub's server believes ``X-Real-Ip`` and the last entry of ``X-Forwarded-For`` of everybody, so
that its ``remote_ip`` is what a client says. Here only the word of known proxies counts.
"""

from __future__ import annotations

from typing import Any

from benchpool_scheduler.contract import forwarding
from benchpool_scheduler.contract.forwarding import Peers, Proxies

THIS_MACHINE = Proxies(forwarding.listed(forwarding.LOOPBACK), Peers())
"""Where the Hub's own proxy is, unless something else is said."""


def address_of(request: Any, proxies: Proxies = THIS_MACHINE) -> str:
    """Return the last address that a proxy of ours vouches for; empty where nobody knows.

    Args:
        request: Tornado's.
    """
    context = getattr(getattr(request, "connection", None), "context", None)
    peer = getattr(context, "address", None)
    if not isinstance(peer, tuple):  # a socket in the file system has none
        return ""
    told = request.headers.get_list("X-Forwarded-For")
    return forwarding.origin(str(peer[0]), "", told, (), proxies).address
