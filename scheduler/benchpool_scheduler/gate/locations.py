"""Addresses between browser and program: request targets and redirects. Pure.

No redirect of a program leads to another address of its own origin. Otherwise a script of its page
could use a redirect to bypass its content security policy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit, urlunsplit

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 as programs print it
DEFAULT_PORTS = frozenset({80, 443})

_DOT = re.compile("%2e", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Address of a service, and the view that its program has of it.

    Attributes:
        base: The service's address, a path without a trailing slash.
        host: The public host as the browser named it, with its port.
        backend: Host and port of the replica.
        keep_prefix: Whether the program sees ``base`` in its paths.
    """

    base: str
    host: str
    backend: tuple[str, int]
    keep_prefix: bool = False


def target(uri: str, place: ServiceAddress) -> str:
    """Return the request target for the program; percent-encoding is preserved.

    >>> place = ServiceAddress("/s/x", "hub", ("127.0.0.1", 1))
    >>> target("/s/x/a%2Fb?c=%20", place), target("/s/x?a", place), target("/s/x", place)
    ('/a%2Fb?c=%20', '/?a', '/')
    """
    if place.keep_prefix:
        return uri
    rest = uri.removeprefix(place.base)
    return rest if rest.startswith("/") else f"/{rest}"


def redirect(location: str, asked: str, place: ServiceAddress) -> str:
    """Return the redirect location for the browser.

    Args:
        location: The program's header.
        asked: The path requested from the program, without the service's address.

    >>> place = ServiceAddress("/s/x", "hub.example:8000", ("127.0.0.1", 4000))
    >>> redirect("/login?a=1", "/", place), redirect("http://127.0.0.1:4000/b", "/", place)
    ('/s/x/login?a=1', '/s/x/b')
    >>> redirect("http://hub.example:8000/hub/home", "/", place), redirect("next", "/a/b", place)
    ('/s/x/hub/home', 'next')
    >>> redirect("../../../../hub/home", "/a/b", place), redirect("/%2e%2E/hub", "/", place)
    ('/s/x/hub/home', '/s/x/hub')
    >>> redirect("https://example.org/a", "/", place), redirect("/s/x/c", "/", place)
    ('https://example.org/a', '/s/x/c')
    """
    cleaned = location.strip().replace("\\", "/")
    try:
        parts = urlsplit(cleaned)
        elsewhere = bool(parts.scheme or parts.netloc) and not _own(parts, place)
    except ValueError:
        return f"{place.base}/"
    if elsewhere:
        return cleaned
    if not parts.path and not parts.netloc:
        return cleaned  # the same page with another query
    if parts.path.startswith("/") or parts.netloc:
        path = _without_base(parts.path or "/", place)
    elif _climbs(parts.path):
        path = asked.partition("?")[0].rpartition("/")[0] + "/" + parts.path
    else:
        return cleaned
    return urlunsplit(("", "", place.base + _straight(path), parts.query, parts.fragment))


def _own(parts: SplitResult, place: ServiceAddress) -> bool:
    """Return whether an address with scheme or host is the program's or in the Hub's origin."""
    if parts.scheme not in ("", "http", "https"):
        return False
    host, port = parts.hostname or "", parts.port
    if port == place.backend[1] and (host in LOOPBACK or host == place.backend[0].lower()):
        return True
    public = urlsplit(f"//{place.host}")
    ports = {public.port} if public.port else DEFAULT_PORTS
    return host == (public.hostname or "") and ({port} if port else DEFAULT_PORTS) & ports != set()


def _without_base(path: str, place: ServiceAddress) -> str:
    """Return the program's path, without the service's address if the path begins with it."""
    rest = path.removeprefix(place.base)
    return rest if rest != path and rest[:1] in ("", "/") else path


def _climbs(path: str) -> bool:
    return ".." in _DOT.sub(".", path).split("/")


def _straight(path: str) -> str:
    """Return a path with one leading slash and without dot segments that leave it."""
    kept: list[str] = []
    for part in path.split("/"):
        plain = _DOT.sub(".", part)
        if plain == "..":
            del kept[-1:]
        elif plain != "." and (part or kept):
            kept.append(part)
    ends = path.endswith("/") or _DOT.sub(".", path).endswith(("/.", "/.."))
    text = "/".join(kept)
    return f"/{text}" + ("/" if ends and text and not text.endswith("/") else "")
