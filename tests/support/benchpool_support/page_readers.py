"""Stand-ins for the Hub's identity, which recognize the user of a page by a cookie."""

from __future__ import annotations

from collections.abc import Mapping

from tornado.web import RequestHandler

from benchpool_scheduler.errors import Forbidden
from benchpool_scheduler.service import Caller


class CookieIdentity:
    """Stand-in for the Hub: the cookie ``reader`` is a name of ``people``."""

    def __init__(self, people: Mapping[str, Caller]) -> None:
        self.people = people

    async def authenticate(self, handler: RequestHandler, *, fresh: bool = False) -> Caller | None:
        """Return the user whom the cookie names; writes and scripts need the token of the page."""
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
        """Return no routes."""
        return []


class TrustingIdentity(CookieIdentity):
    """Identity that accepts the cookie alone, which the page must not rely on."""

    async def authenticate(self, handler: RequestHandler, *, fresh: bool = False) -> Caller | None:
        """Return the user whom the cookie names."""
        return self.people.get(handler.get_cookie("reader") or "")
