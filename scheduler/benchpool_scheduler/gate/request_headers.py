"""Request headers that a served program sees: pure.

All identity headers come from the gate alone: such headers from a client are dropped in every
spelling. The caller's token and the Hub's cookies are removed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import quote

from tornado.httputil import HTTPHeaders

from benchpool_scheduler.gate import cookies
from benchpool_scheduler.gate.locations import ServiceAddress

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers of one connection only, RFC 9110, section 7.6.1; ``Connection`` may name more."""

DROPPED = HOP_BY_HOP | {
    "authorization",  # the caller's token
    "client-ip",
    "cookie",  # filtered
    "content-length",  # set again by the gate
    "expect",  # answered by the gate
    "forwarded",
    "host",  # the replica's own
    "origin",  # already checked; the replica's own
    "proxy",  # becomes HTTP_PROXY in programs that use CGI's names
    "remote-user",
    "true-client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-real-ip",
    "x-request-id",
    "x-rewrite-url",
    "x-scheme",
    "x-script-name",
}
DROPPED_BEGINNINGS = ("x-forwarded-", "x-auth-", "x-original-", "x-remote-", "x-webauth-")
"""Prefixes of headers in which other proxies pass identity, address and origin."""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """Facts about a request that the gate passes to a program.

    Attributes:
        user: The visitor's name.
        scheme: ``http`` or ``https``, as the browser sees the Hub.
        client: Source address of the request.
        request_id: Made by the gate for this request.
    """

    user: str
    scheme: str
    client: str
    request_id: str


def for_program(
    headers: HTTPHeaders, place: ServiceAddress, facts: RequestFacts, hidden: Collection[str] = ()
) -> HTTPHeaders:
    """Return the headers for the program, without those of the body's length.

    A name with an underscore is dropped, since programs cannot distinguish it from a hyphen.

    >>> came = HTTPHeaders({"Accept": "*/*", "Authorization": "token t", "X-Forwarded-User": "a"})
    >>> came.add("X_Forwarded_User", "root")
    >>> place = ServiceAddress("/s/x", "hub", ("127.0.0.1", 4000))
    >>> sent = for_program(came, place, RequestFacts("susan", "https", "10.0.0.1", "r1"))
    >>> sorted(sent.get_all())[:3]
    [('Accept', '*/*'), ('Host', '127.0.0.1:4000'), ('X-Forwarded-For', '10.0.0.1')]
    >>> sent.get_list("X-Forwarded-User"), sent["X-Forwarded-Prefix"], "Authorization" in sent
    (['susan'], '/s/x', False)
    """
    named = {one.strip().lower() for one in headers.get("Connection", "").split(",")}
    sent = HTTPHeaders({"Host": _authority(place)})
    for name, value in headers.get_all():
        low = name.lower()
        if low in DROPPED or low in named or "_" in low or low.startswith(DROPPED_BEGINNINGS):
            continue
        sent.add(name, value)
    if "Origin" in headers:
        sent["Origin"] = f"http://{_authority(place)}"
    kept = cookies.for_program(headers.get_list("Cookie"), hidden)
    if kept:
        sent["Cookie"] = kept
    sent["X-Forwarded-User"] = quote(facts.user, safe="@+ ")
    sent["X-Forwarded-Prefix"] = place.base
    sent["X-Forwarded-Proto"] = facts.scheme
    sent["X-Forwarded-Host"] = place.host
    sent["X-Forwarded-For"] = facts.client
    sent["X-Request-Id"] = facts.request_id
    return sent


def _authority(place: ServiceAddress) -> str:
    host, port = place.backend
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def framing_fault(method: str, headers: HTTPHeaders) -> str | None:
    """Return why the body length of a request is invalid or ambiguous, or None.

    Two programs that disagree on the end of a body could read one request as two.

    >>> framing_fault("POST", HTTPHeaders({"Content-Length": "5, 6"}))
    'it has several lengths'
    >>> framing_fault("DELETE", HTTPHeaders({"Transfer-Encoding": "chunked"}))
    'a DELETE with a body must have a length'
    >>> framing_fault("POST", HTTPHeaders({"Transfer-Encoding": "chunked"}))
    """
    lengths = headers.get_list("Content-Length")
    encodings = headers.get_list("Transfer-Encoding")
    if len(lengths) > 1 or any("," in one for one in lengths):
        return "it has several lengths"
    if lengths and encodings:
        return "it has a length and an encoding"
    if lengths and not (lengths[0].isascii() and lengths[0].isdigit() and len(lengths[0]) < 16):
        return "its length is not a number"
    if encodings and [one.lower() for one in encodings] != ["chunked"]:
        return "its encoding is not chunked"
    if encodings and method not in ("POST", "PUT", "PATCH"):
        return f"a {method} with a body must have a length"
    return None
