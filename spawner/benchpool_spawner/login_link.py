"""Login by a one-time link, in addition to other ways of login.

A key is a random word that ``benchpool up`` (or ``benchpool login-link``) prints inside a link.
Only its hash is stored: one small file per key in a folder that only the service's account may
read. Using a key deletes its file, so each key works once, even for two simultaneous requests.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from pathlib import Path
from typing import Any

from jupyterhub.auth import Authenticator, PAMAuthenticator
from jupyterhub.authenticators.shared import SharedPasswordAuthenticator
from jupyterhub.handlers import BaseHandler
from jupyterhub.utils import url_path_join
from tornado.web import HTTPError
from traitlets import Instance, Unicode
from traitlets.config import LoggingConfigurable

from benchpool_scheduler.contract import AuditOutcome
from benchpool_scheduler.phrases import count
from benchpool_spawner.landing import after_login
from benchpool_spawner.login_pace import LoginPace
from benchpool_spawner.logins import LoginReports
from benchpool_spawner.request_address import address_of

LINK = "login link"

_KEY = re.compile(r"[A-Za-z0-9_-]{20,200}")


def redeem(keys: Path, key: str, now: float | None = None) -> str | None:
    """Use a key and return its user. None if it was used, has expired or never existed.

    The lookup is by hash, so that its timing reveals nothing about the stored keys.
    """
    if not _KEY.fullmatch(key):
        return None
    file = keys / hashlib.sha256(key.encode()).hexdigest()
    try:
        kept = json.loads(file.read_text())
        os.unlink(file)  # of two simultaneous requests, only one can delete it
    except (OSError, ValueError):
        return None
    alive = (time.time() if now is None else now) < float(kept["expires"])
    return str(kept["user"]) if alive else None


def whose(keys: Path, key: str) -> str | None:
    """Return the user of a key without using it. None in the same cases as ``redeem``."""
    if not _KEY.fullmatch(key):
        return None
    try:
        kept = json.loads((keys / hashlib.sha256(key.encode()).hexdigest()).read_text())
    except (OSError, ValueError):
        return None
    return str(kept["user"]) if time.time() < float(kept["expires"]) else None


class LoginLinkHandler(BaseHandler):  # type: ignore[misc]
    """``/hub/login-link?key=...``: logs the user in and redirects.

    If another user is logged in, a page asks first. Without it, a user who follows a foreign link
    would work under another name without noticing.
    """

    async def get(self) -> None:
        """Use the key and set the login cookie. Ask first if that changes the current user."""
        self._be_private()
        key = self.get_argument("key", "")
        name = whose(Path(self.authenticator.login_keys), key)
        if name is None or self.current_user is None or self.current_user.name == name:
            await self._enter(key)
            return
        page = await self.render_template(
            "login_link_asks.html",
            now=self.current_user.name,
            then=name,
            key=key,
            back=url_path_join(self.hub.base_url, "home"),
        )
        self.finish(page)

    async def post(self) -> None:
        """Handle the confirmed page. The Hub has checked that it was its own page."""
        self._be_private()
        await self._enter(self.get_body_argument("key", ""))

    def _be_private(self) -> None:
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("Cache-Control", "no-store")

    async def _enter(self, key: str) -> None:
        name = redeem(Path(self.authenticator.login_keys), key)
        if name is None:
            if self.current_user is not None:
                # A reload, or a second click of a user who is already logged in.
                self._redirect_after_login(self.current_user)
                return
            self.authenticator.report_login(self, "", AuditOutcome.REFUSED, LINK)
            self.set_status(403)
            self.finish(await self.render_template("login_link_used.html"))
            return
        user = await self.auth_to_user({"name": name, "auth_state": None})
        self.set_login_cookie(user)
        self.log.info("User logged in by link: %s", name)
        self.authenticator.report_login(self, name, AuditOutcome.DONE, LINK)
        self._redirect_after_login(user)

    def _redirect_after_login(self, user: Any) -> None:
        # get_next_url is not used, because it would pass the query on as server options.
        self.redirect(url_path_join(self.hub.base_url, after_login(user)))


class TooManyFailedLogins(HTTPError):
    """Passwords are not checked for some seconds. The Hub adds ``headers`` to its page."""

    def __init__(self, wait_s: int) -> None:
        words = f"Too many failed logins. Wait {count(wait_s, 'second')}, then try again."
        super().__init__(429, words)
        self.headers = {"Retry-After": str(wait_s)}


class LoginLinks(LoggingConfigurable):
    """Mixin that adds login links to an authenticator."""

    login_keys = Unicode(
        help="""
        Folder with the hashes of unused keys.
        """,
    ).tag(config=True)

    reports = Instance(
        LoginReports,
        allow_none=True,
        help="""
        Reports logins by link and failed logins to the scheduler's audit trail.
        """,
    ).tag(config=True)

    _pace = Instance(LoginPace, ())

    def report_login(self, handler: Any, user: str, outcome: AuditOutcome, way: str) -> None:
        """Report a login, if reports are configured."""
        if self.reports is not None:
            self.reports.report(user, outcome, way, handler)

    async def get_authenticated_user(self, handler: Any, data: Any) -> Any:
        """Check name and password as the authenticator does, and report refusals.

        After some failures no password is checked for a while.
        """
        user = str(data.get("username", "")) if isinstance(data, dict) else ""
        address = (self.reports.address if self.reports else address_of)(handler.request)
        wait_s = self._pace.wait_s(address, user, time.monotonic())
        if wait_s:
            raise TooManyFailedLogins(wait_s)
        found = None
        try:
            found = await super().get_authenticated_user(handler, data)  # type: ignore[misc]
        finally:
            if found:
                self._pace.succeeded(address, user)
            else:
                self._pace.failed(address, user, time.monotonic())
                self.report_login(handler, user, AuditOutcome.REFUSED, type(self).__name__)
        return found

    def get_handlers(self, app: Any) -> list[tuple[str, type[BaseHandler]]]:
        """Return the authenticator's handlers and the handler of the links."""
        handlers: list[tuple[str, type[BaseHandler]]] = super().get_handlers(app)  # type: ignore[misc]
        return [*handlers, ("/login-link", LoginLinkHandler)]


class OneTimeAuthenticator(LoginLinks, Authenticator):  # type: ignore[misc]
    """Authenticator that accepts login links only."""

    custom_html = (
        '<div class="auth-form-body"><h1>Log in</h1><p>Log in to this JupyterHub with a link that '
        "works once. Type <code>benchpool login-link</code> in a terminal on the machine to get "
        "one.</p></div>"
    )

    async def authenticate(self, handler: Any, data: Any) -> None:
        """Refuse every login by name and password."""


class SharedPasswordLinkAuthenticator(LoginLinks, SharedPasswordAuthenticator):  # type: ignore[misc]
    """Authenticator that accepts the shared password and login links."""


class PAMLinkAuthenticator(LoginLinks, PAMAuthenticator):  # type: ignore[misc]
    """Authenticator that accepts the machine's own passwords and login links."""
