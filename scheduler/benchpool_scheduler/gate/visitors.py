"""Authentication and origin checks of callers at the gate.

A program sends a token. A browser sends the session of benchpool. A served page has no XSRF tokens,
so a request with a session must come from a page of the Hub's own origin or open a page. Pages of
that origin cannot be distinguished; only separate domains would allow that.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from tornado.httputil import HTTPHeaders

from benchpool_scheduler.errors import Forbidden

READS = frozenset({"GET", "HEAD", "OPTIONS"})


def refuse_other_sites(method: str, headers: HTTPHeaders, host: str, *, websocket: bool) -> None:
    """Check that no page of another site has caused a request.

    Args:
        method: HTTP method in capitals.
        headers: Unchanged request headers.
        host: Host that the client named, with its port.
        websocket: Whether it opens a websocket; browsers let any page open one.

    Raises:
        Forbidden: It came from another site's page, or has a session but no origin headers.

    >>> refuse_other_sites("POST", HTTPHeaders({"Origin": "https://hub"}), "hub", websocket=False)
    >>> refuse_other_sites(
    ...     "GET", HTTPHeaders({"Origin": "https://no.hub"}), "hub", websocket=True)
    Traceback (most recent call last):
    ...
    benchpool_scheduler.errors.Forbidden: This came from a page of another site (https://no.hub), \
which may not call this service. Open the service's own page.
    """
    site, origin = headers.get("Sec-Fetch-Site"), headers.get("Origin")
    if site is not None:
        if site in ("same-origin", "none") or _opens_page(method, headers, websocket):
            return
        raise _elsewhere(origin or site)
    if origin is not None:
        if origin != "null" and _netloc(origin) == host.lower():
            return
        raise _elsewhere(origin)
    session = "Cookie" in headers and "Authorization" not in headers
    if session and (websocket or method not in READS):
        raise Forbidden(
            "A browser's session does not show which page sent this request. Programs must send a "
            "token of the Hub as `Authorization: token …`.",
            code="xsrf",
        )


def opens_page(method: str, headers: HTTPHeaders) -> bool:
    """Return whether a browser opens a page, so that a user sees the answer.

    >>> opens_page("GET", HTTPHeaders({"Accept": "text/html,*/*"}))
    True
    >>> opens_page("GET", HTTPHeaders({"Accept": "text/html", "Sec-Fetch-Mode": "cors"}))
    False
    """
    wants = "text/html" in headers.get("Accept", "")
    return method == "GET" and wants and headers.get("Sec-Fetch-Mode", "navigate") == "navigate"


def _opens_page(method: str, headers: HTTPHeaders, websocket: bool) -> bool:
    """Return whether a link of another site opens this page, which exposes nothing to that site."""
    opens = headers.get("Sec-Fetch-Mode") == "navigate"
    alone = headers.get("Sec-Fetch-Dest", "document") == "document"
    return method in ("GET", "HEAD") and opens and alone and not websocket


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _elsewhere(where: str) -> Forbidden:
    return Forbidden(
        f"This came from a page of another site ({where[:100]}), which may not call this service. "
        "Open the service's own page.",
        code="other-site",
    )
