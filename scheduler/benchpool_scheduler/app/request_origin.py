"""Origin of requests, as reported by trusted proxies or by another replica.

A standby replica forwards a request to the leader and signs its origin. The leader does not know
the addresses of replicas, but shares a secret with them.
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
"""Address of the Hub's proxy on one machine."""


class RequestOrigins:
    """Determines where requests come from.

    Args:
        proxies: Returns the proxies that are trusted now.
        secret: Secret shared by all replicas. Empty for a single process.
    """

    def __init__(
        self, proxies: Callable[[], Proxies] = lambda: LOOPBACK, secret: bytes = b""
    ) -> None:
        self._proxies = proxies
        self._secret = secret

    def of(self, peer: str, scheme: str, headers: HTTPHeaders) -> RequestSource:
        """Return the origin of a request with these headers, received from ``peer``."""
        forwarded = headers.get_list("X-Forwarded-For"), headers.get_list("X-Forwarded-Proto")
        if HANDED_ON in headers and self._secret:
            claimed = RequestSource(*(texts[-1] if texts else "" for texts in forwarded))
            if hmac.compare_digest(self.signature(claimed), headers[HANDED_ON]):
                return claimed
        return forwarding.origin(peer, scheme, *forwarded, self._proxies())

    def signature(self, origin: RequestSource) -> str:
        """Return the signature that proves to the leader that another replica reports this origin.

        >>> origins = RequestOrigins(secret=b"shared")
        >>> len(origins.signature(RequestSource("10.0.0.1", "http")))
        64
        """
        text = f"handed on {origin.scheme} {origin.address}"
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()
