"""Response headers of a program that reach the browser: pure.

The program shares its origin with the Hub, with benchpool and with every notebook server. Headers
with effects beyond the service's own address are removed. A policy is added that keeps scripts of
its pages from calling the rest of the origin as the visitor. Only a separate domain gives stronger
isolation: see docs/explanation/services.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from tornado.httputil import HTTPHeaders

from benchpool_scheduler.gate import cookies, locations
from benchpool_scheduler.gate.locations import ServiceAddress
from benchpool_scheduler.gate.request_headers import HOP_BY_HOP

DROPPED = HOP_BY_HOP | {
    "accept-ch",
    "alt-svc",
    "authentication-info",
    "clear-site-data",
    "critical-ch",
    "cross-origin-embedder-policy",
    "cross-origin-opener-policy",
    "nel",
    "origin-agent-cluster",
    "public-key-pins",
    "report-to",
    "reporting-endpoints",
    "service-worker-allowed",
    "set-cookie",  # rewritten
    "set-cookie2",
    "set-login",
    "strict-transport-security",
    "use-as-dictionary",
    "www-authenticate",  # a browser would prompt for a password in the name of the Hub
    "x-accel-redirect",  # commands to a proxy in front of the Hub
    "x-lighttpd-send-file",
    "x-reproxy-url",
    "x-sendfile",
}
DROPPED_BEGINNINGS = ("access-control-",)
"""Prefix of CORS headers; pages of other origins are rejected in any case."""

MOST_COOKIES = 50
"""Maximum cookies of an answer; browsers keep at least this number per site."""

_HOST = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]{1,5})?")


def for_browser(
    headers: HTTPHeaders, asked: str, place: ServiceAddress, hidden: Collection[str] = ()
) -> HTTPHeaders:
    """Return the headers for the browser.

    Args:
        headers: As the program sent them.
        asked: The path requested from the program, without the service's address.

    >>> place = ServiceAddress("/s/x", "hub:8000", ("127.0.0.1", 4000))
    >>> came = HTTPHeaders({"Location": "/login", "Service-Worker-Allowed": "/"})
    >>> came.add("Set-Cookie", "a=1; Path=/")
    >>> sent = for_browser(came, "/", place)
    >>> sent["Location"], sent["Set-Cookie"], "Service-Worker-Allowed" in sent
    ('/s/x/login', 'a=1; Path=/s/x/', False)
    """
    named = {one.strip().lower() for one in headers.get("Connection", "").split(",")}
    sent = HTTPHeaders()
    for name, value in headers.get_all():
        low = name.lower()
        if low in DROPPED or low in named or low.startswith(DROPPED_BEGINNINGS):
            continue
        if low == "location":
            value = locations.redirect(value, asked, place)
        sent.add(name, value)
    for header in headers.get_list("Set-Cookie")[:MOST_COOKIES]:
        bound = cookies.for_browser(header, place.base, hidden)
        if bound is not None:
            sent.add("Set-Cookie", bound)
    sent.add("Content-Security-Policy", confinement(place))
    sent.add("Cross-Origin-Opener-Policy", "same-origin")
    return sent


@lru_cache(maxsize=1000)
def _confinement(host: str, base: str) -> str:
    known = _HOST.fullmatch(host) is not None
    pages = " ".join(f"{scheme}://{host}{base}/" for scheme in ("http", "https"))
    sockets = " ".join(f"{scheme}://{host}{base}/" for scheme in ("ws", "wss"))
    own, calls = (pages, f"{pages} {sockets}") if known else ("'self'", "'self'")
    return "; ".join(
        (
            f"connect-src {calls} blob: data:",
            f"frame-src {own} blob: data:",
            f"worker-src {own} blob:",
            f"form-action {own}",
            f"base-uri {own}",
            "object-src 'none'",
            "frame-ancestors 'self'",
        )
    )


def confinement(place: ServiceAddress) -> str:
    """Return the policy that keeps a page's scripts to the service's own address.

    It is added to the program's own policy: a browser obeys both. Styles, images, fonts and scripts
    may come from anywhere, as programs need them. A host that no policy can name (an IPv6 address)
    gets ``'self'``, the whole origin.

    >>> confinement(ServiceAddress("/s/x", "hub:8000", ("127.0.0.1", 1))).split("; ")[1]
    'frame-src http://hub:8000/s/x/ https://hub:8000/s/x/ blob: data:'
    """
    return _confinement(place.host, place.base)
