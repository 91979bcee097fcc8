"""The common base of pages: reader, headers, templates and error pages."""

from __future__ import annotations

import asyncio
import hmac
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from types import TracebackType
from typing import ClassVar
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from tornado.iostream import StreamClosedError
from tornado.web import Finish, HTTPError, RequestHandler

from benchpool_scheduler.api.identity import Identity
from benchpool_scheduler.contract import twins
from benchpool_scheduler.contract.operations import OPERATIONS
from benchpool_scheduler.errors import BenchpoolError, Forbidden, NotAuthenticated, NotFound
from benchpool_scheduler.service import Caller, Clock, Pool
from benchpool_scheduler.web.job_rows import Reader
from benchpool_scheduler.web.render_limiter import PageTurn, RenderLimiter
from benchpool_scheduler.web.words import Moment, instants, moment

log = logging.getLogger(__name__)

POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Content security policy: no inline script or style, no other origins, no text as markup."""

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters["instants"] = instants


def _twin(operation: str, part: str = "", /, **given: str) -> str:
    """Return the terminal command that is equivalent to a page's form."""
    return twins.command(_BY_NAME[operation], part, **given)


_BY_NAME = {one.name: one for one in OPERATIONS}
TEMPLATES.globals["twin"] = _twin

HEADINGS = {
    400: "Invalid request",
    401: "Please log in",
    403: "Not allowed",
    404: "Page not found",
    405: "Method not allowed",
    409: "Not possible now",
    422: "Invalid request",
    429: "Too many requests",
    503: "Not ready",
}


@dataclass(frozen=True, slots=True)
class Site:
    """Shared context of all pages: pool, identity, addresses and clock."""

    pool: Pool
    identity: Identity
    root: str
    hub: str
    clock: Clock
    turns: RenderLimiter = field(default_factory=RenderLimiter)

    def now(self) -> datetime:
        """Return the present time."""
        return datetime.fromtimestamp(self.clock.now(), UTC)

    @property
    def zone(self) -> ZoneInfo:
        """Return the time zone of days and months, as in budgets and reports."""
        return ZoneInfo(self.pool.observed.now.configuration.gpu_hours.time_zone)

    def today(self) -> date:
        """Return the current date in that zone."""
        return self.now().astimezone(self.zone).date()


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Frame of a page; ``back`` is the page that an action redirects to."""

    root: str
    hub: str
    xsrf: str
    reader: Reader | None
    now: Moment
    back: str = "dashboard"


class PageHandler(RequestHandler):
    """Base of all pages."""

    site: Site
    caller: Caller | None = None
    _turn: PageTurn | None = None

    def initialize(self, site: Site) -> None:
        """Store the shared context."""
        self.site = site

    def set_default_headers(self) -> None:
        """Set strict security headers, on error pages too."""
        self.clear_header("Server")
        self.set_header("Content-Security-Policy", POLICY)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "same-origin")
        self.set_header("Cross-Origin-Opener-Policy", "same-origin")
        # It keeps pages of users' services, which share our origin, from being our openers.
        self.set_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")
        self.set_header("Cache-Control", "no-store")

    async def reader(self) -> Caller:
        """Return the authenticated reader, or redirect to the login; call it once per page.

        It waits for the reader's render slot. Errors: Forbidden, NotAuthenticated, TooMany,
        Unavailable.
        """
        self._refuse_other_sites()
        try:
            caller = await self.site.identity.authenticate(self)
        except Forbidden as refused:
            if refused.code != "xsrf" or not self._opens_page():
                raise
            caller = None  # session expired: log in again
        if caller is None:
            if self._opens_page():
                self.redirect(self.site.identity.login_url(self))
                raise Finish
            raise NotAuthenticated("Your session has ended. Open the page again to log in.")
        self.caller = caller
        self._turn = await self.site.turns.begin(caller.name)
        await self.site.pool.whole()
        return caller

    def on_finish(self) -> None:
        """Release the reader's render slot."""
        if self._turn is not None:
            self._turn.end()
            self._turn = None

    def _opens_page(self) -> bool:
        mode = self.request.headers.get("Sec-Fetch-Mode", "navigate")
        return self.request.method == "GET" and mode == "navigate"

    def _refuse_other_sites(self) -> None:
        site = self.request.headers.get("Sec-Fetch-Site", "none")
        if self.request.method not in ("GET", "HEAD") and site not in ("same-origin", "none"):
            raise Forbidden("This request came from another site. Use the buttons of this page.")

    def refuse_forged(self) -> None:
        """Compare a form's token with the session's, even if ``Identity`` has checked it.

        Errors: Forbidden.
        """
        given = self.get_body_argument("_xsrf", "").encode()
        if not hmac.compare_digest(given, self.site.identity.xsrf_token(self).encode()):
            raise Forbidden(
                "The token of this form is no longer valid. Open the page again.",
                code="xsrf",
            )

    def facts(self, *, back: str = "dashboard") -> PageFacts:
        """Return the frame of this page."""
        caller = self.caller
        return PageFacts(
            root=self.site.root,
            hub=self.site.hub,
            xsrf="" if caller is None else self.site.identity.xsrf_token(self),
            reader=None if caller is None else Reader(caller.name, caller.admin),
            now=moment(self.site.now(), self.site.now()),
            back=back,
        )

    async def show(self, template: str, page: PageFacts, **context: object) -> None:
        """Render a page as the response.

        Long tables take a tenth of a second, so rendering runs in a thread. The context is frozen
        data, and passes and other requests continue meanwhile.
        """
        render = TEMPLATES.get_template(template).render
        text = await asyncio.to_thread(render, page=page, **context)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        with suppress(StreamClosedError):  # the reader has left the page
            await self.finish(text)

    def log_exception(
        self,
        typ: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        """Log only our own errors; a refusal is a normal response."""
        if not isinstance(value, BenchpoolError):
            super().log_exception(typ, value, tb)

    def send_error(self, status_code: int = 500, **kwargs: object) -> None:
        """Respond with the status of the error."""
        exc_info = kwargs.get("exc_info")
        error = exc_info[1] if isinstance(exc_info, tuple) else None
        if isinstance(error, BenchpoolError):
            status_code = error.http_status
        super().send_error(status_code, **kwargs)

    def write_error(self, status_code: int, **kwargs: object) -> None:
        """Show an error page with the cause and a way back."""
        exc_info = kwargs.get("exc_info")
        error = exc_info[1] if isinstance(exc_info, tuple) else None
        self.set_header("Content-Type", "text/html; charset=utf-8")
        page = PageFacts(
            root=self.site.root,
            hub=self.site.hub,
            xsrf="",
            reader=None if self.caller is None else Reader(self.caller.name, self.caller.admin),
            now=moment(self.site.now(), self.site.now()),
        )
        text = TEMPLATES.get_template("error.html").render(
            page=page,
            status=status_code,
            heading=HEADINGS.get(status_code, "Internal error"),
            message=_message(status_code, error),
        )
        self.finish(text)


def _message(status: int, error: BaseException | None) -> str:
    if isinstance(error, BenchpoolError):
        return error.message
    if status == 404:
        return "No page has this address. Start from the pool."
    if status == 405:
        return "This request method is not allowed here. Use the buttons of a page."
    if isinstance(error, HTTPError) and status < 500:
        return "The service could not read this request. Go back and use the page's own buttons."
    return (
        "benchpool failed to build this page. The service's log has the error. "
        "Jobs and benches are not affected."
    )


class FormHandler(PageHandler):
    """Handler of an address to which a page sends a form.

    Attributes:
        PAGE: Address of that page, formatted with the variable parts of this address.
    """

    PAGE: ClassVar[str]

    async def get(self, **parts: str) -> None:
        """Redirect to the page: after an error or a login the browser loads this address with
        GET.
        """
        self.redirect(f"{self.site.root}{self.PAGE.format(**parts)}", status=303)


class NoPageHandler(PageHandler):
    """Handler of all addresses without a page."""

    async def prepare(self) -> None:
        """Raise NotFound for a logged-in reader; redirect other readers to the login."""
        await self.reader()
        raise NotFound("No page has this address. Start from the pool.")
