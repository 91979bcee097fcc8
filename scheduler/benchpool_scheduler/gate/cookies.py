"""Cookies between a browser and a served program, which share the Hub's origin: pure.

A browser sends a cookie to every address below the cookie's path. So each request carries the Hub's
session, that of benchpool and their XSRF tokens. The gate removes them from requests. In responses
it binds a cookie to the service's own address.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

PREFIXES = ("__host-", "__secure-")
OURS = ("jupyterhub-", "service-")
"""Prefixes of cookie names of the Hub and of its services: sessions, OAuth states."""

XSRF = "_xsrf"


def hidden(name: str, others: Collection[str] = ()) -> bool:
    """Return whether a cookie must be hidden from served programs.

    Args:
        name: Name of the cookie.
        others: Further names that the site hides, in lower case.

    >>> [hidden(one) for one in ("_xsrf", "jupyterhub-session-id", "__Host-service-benchpool")]
    [True, True, True]
    >>> hidden("session"), hidden("_streamlit_xsrf"), hidden("_oauth2_proxy", {"_oauth2_proxy"})
    (False, False, True)
    """
    bare = name.strip().lower()
    for prefix in PREFIXES:
        bare = bare.removeprefix(prefix)
    return bare == XSRF or bare.startswith(OURS) or bare in others


def for_program(headers: Iterable[str], others: Collection[str] = ()) -> str:
    """Return the ``Cookie`` header for the program; empty if no cookie is left.

    >>> for_program(["a=1; _xsrf=2|x; service-benchpool=secret", "b=3"])
    'a=1; b=3'
    """
    pairs = [pair.strip() for header in headers for pair in header.split(";")]
    return "; ".join(pair for pair in pairs if pair and not hidden(pair.partition("=")[0], others))


def for_browser(header: str, base: str, others: Collection[str] = ()) -> str | None:
    """Return a program's ``Set-Cookie`` header bound to its address, or None to drop the cookie.

    Args:
        header: As the program sent it.
        base: The service's address without a trailing slash.

    >>> for_browser("a=1; Path=/; Domain=example.org; HttpOnly", "/s/x")
    'a=1; HttpOnly; Path=/s/x/'
    >>> for_browser("a=1; path=/api", "/s/x"), for_browser("a=1; Path=/s/x/api", "/s/x")
    ('a=1; Path=/s/x/api', 'a=1; Path=/s/x/api')
    >>> for_browser("a=1; Path=/s/x/../../hub", "/s/x"), for_browser("_xsrf=1", "/s/x")
    ('a=1; Path=/s/x/', None)
    """
    pair, *attributes = header.split(";")
    name = pair.partition("=")[0].strip()
    if not name or hidden(name, others) or name.lower().startswith("__host-"):
        return None  # a browser accepts __Host- cookies only for the whole origin
    kept, path = [pair.strip()], ""
    for attribute in attributes:
        key, _, value = attribute.strip().partition("=")
        match key.strip().lower():
            case "domain":
                continue
            case "path":
                path = value.strip()
            case "":
                continue
            case _:
                kept.append(attribute.strip())
    return "; ".join([*kept, f"Path={_inside(path, base)}"])


def _inside(path: str, base: str) -> str:
    if not path.startswith("/") or ".." in path or "%" in path or "\\" in path or path == "/":
        return f"{base}/"
    return path if path.startswith(f"{base}/") else f"{base}{path}"
