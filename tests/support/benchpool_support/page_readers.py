"""Who reads a page without a Hub: stand-ins for the Hub's identity, told by a cookie."""

from __future__ import annotations

from collections.abc import Mapping

from tornado.web import RequestHandler

from benchpool_scheduler.errors import Forbidden
from benchpool_scheduler.service import Caller


class CookieIdentity:
    """A stand-in for the Hub: the cookie ``reader`` is a name of ``people``."""

    def __init__(self, people: Mapping[str, Caller]) -> None:
        self.people = people

    async def authenticate(self, handler: RequestHandler, *, fresh: bool = False) -> Caller | None:
        """Return who the cookie names; writing, and scripts, need the token of the page."""
        caller = self.people.get(handler.get_cookie("reader") or "")
        mode = handler.request.headers.get("Sec-Fetch-Mode", "navigate")
        if caller is not None and (handler.request.method != "GET" or mode == "cors"):
            given = handler.get_argument("_xsrf", "") or handler.request.headers.get("X-XSRFToken")
            if given != self.xsrf_token(handler):
                raise Forbidden("This came without its page's token: open it again.", code="xsrf")
        return caller

    def login_url(self, handler: RequestHandler) -> str:
        """Return the Hub's login."""
        return "/hub/login"

    def xsrf_token(self, handler: RequestHandler) -> str:
        """Return a token for this reader."""
        return f"token-of-{handler.get_cookie('reader')}"

    def routes(self) -> list[tuple[str, type[RequestHandler]]]:
        """Return nothing."""
        return []


class TrustingIdentity(CookieIdentity):
    """An identity that takes a cookie for enough, as some would: the page must not rely on it."""

    async def authenticate(self, handler: RequestHandler, *, fresh: bool = False) -> Caller | None:
        """Return who the cookie names."""
        return self.people.get(handler.get_cookie("reader") or "")
