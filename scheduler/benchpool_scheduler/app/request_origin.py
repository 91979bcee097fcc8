"""Where requests come from: by the word of proxies that are ours, or of another replica.

A replica that stands by hands a request on to the leader and signs where it came from; the leader
cannot know the addresses of replicas, but has the secret that they share.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from tornado.httputil import HTTPHeaders

from benchpool_scheduler.contract import forwarding
from benchpool_scheduler.contract.forwarding import Peers, Proxies, RequestSource

HANDED_ON = "X-Benchpool-Handed-On"

LOOPBACK = Proxies(forwarding.listed(forwarding.LOOPBACK), Peers())
"""Where the Hub's proxy is on one machine."""


class RequestOrigins:
    """Tells where requests come from.

    Args:
        proxies: Returns whose word counts now.
        secret: What all replicas share; empty where there is one process.
    """

    def __init__(
        self, proxies: Callable[[], Proxies] = lambda: LOOPBACK, secret: bytes = b""
    ) -> None:
        self._proxies = proxies
        self._secret = secret

    def of(self, peer: str, scheme: str, headers: HTTPHeaders) -> RequestSource:
        """Return where a request of these headers came from, by a connection from ``peer``."""
        told = headers.get_list("X-Forwarded-For"), headers.get_list("X-Forwarded-Proto")
        if HANDED_ON in headers and self._secret:
            said = RequestSource(*(texts[-1] if texts else "" for texts in told))
            if hmac.compare_digest(self.signature(said), headers[HANDED_ON]):
                return said
        return forwarding.origin(peer, scheme, *told, self._proxies())

    def signature(self, origin: RequestSource) -> str:
        """Return by which the leader knows that another replica says so.

        >>> origins = RequestOrigins(secret=b"shared")
        >>> len(origins.signature(RequestSource("10.0.0.1", "http")))
        64
        """
        text = f"handed on {origin.scheme} {origin.address}"
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()
