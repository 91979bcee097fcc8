"""Origin of requests to the Hub.

The Hub's server trusts ``X-Real-Ip`` and the last entry of ``X-Forwarded-For`` from any client, so
that clients can set its ``remote_ip``. This module trusts known proxies only.
"""

from __future__ import annotations

from typing import Any

from benchpool_scheduler.contract import forwarding
from benchpool_scheduler.contract.forwarding import Peers, Proxies

THIS_MACHINE = Proxies(forwarding.listed(forwarding.LOOPBACK), Peers())
"""Default location of the Hub's own proxy."""


def address_of(request: Any, proxies: Proxies = THIS_MACHINE) -> str:
    """Return the last address reported by a trusted proxy. Empty if it is unknown.

    Args:
        request: Tornado request.
    """
    context = getattr(getattr(request, "connection", None), "context", None)
    peer = getattr(context, "address", None)
    if not isinstance(peer, tuple):  # a Unix socket has no address
        return ""
    forwarded = request.headers.get_list("X-Forwarded-For")
    return forwarding.origin(str(peer[0]), "", forwarded, (), proxies).address
