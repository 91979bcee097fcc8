"""Identification of callers: the port shared by api and web, and its Hub implementation.

A request is identified by a Hub token in its ``Authorization`` header, or by the cookie of a
browser session that the Hub's OAuth made. Except for opening a page, a cookie is valid only with
the page's XSRF token. The token is sent in the header ``X-XSRFToken``, or as ``?_xsrf=`` where a
browser cannot set headers, as for event streams.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import quote

import httpx
from jupyterhub.services.auth import HubOAuth, HubOAuthCallbackHandler
from tornado.httputil import url_concat
from tornado.web import HTTPError, RequestHandler

from benchpool_scheduler.api.hub_auth import CertainHubAuth
from benchpool_scheduler.errors import Forbidden, Unavailable
from benchpool_scheduler.service import Caller

CACHE_S = 4
"""Maximum age of cached tokens and users, in seconds. Revoked rights may last this long."""


class Identity(Protocol):
    """Identifies the senders of requests."""

    async def authenticate(self, handler: RequestHandler, *, fresh: bool = False) -> Caller | None:
        """Return the caller, or None if there is none. ``fresh`` bypasses every cache.

        Raises:
            Forbidden: A browser session without its page's XSRF token.
            Unavailable: The Hub does not answer.
        """

    def login_url(self, handler: RequestHandler) -> str:
        """Return the login address for a user who is not logged in."""

    def xsrf_token(self, handler: RequestHandler) -> str:
        """Return the XSRF token for a page that the caller just opened."""

    def routes(self) -> list[tuple[str, type[RequestHandler]]]:
        """Return the Tornado rules needed for login."""


ACCESS = "access:services!service=benchpool"
"""Hub scope that every user of the service needs."""


class HubIdentity:
    """Identity provided by the JupyterHub that runs this service.

    The token's model names the caller and shows whether it may use this service. The Hub is queried
    for a user's groups and administrator role with the service's own token, because the scopes of a
    user's token may not include them.

    Args:
        hub_auth: Configured from the service's environment by default.
        clock: Monotonic time, in seconds.
    """

    def __init__(
        self, hub_auth: HubOAuth | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.hub_auth = hub_auth or CertainHubAuth.instance(cache_max_age=CACHE_S)
        self._clock = clock
        self._people: dict[str, tuple[float, Caller]] = {}
        self._http = httpx.AsyncClient(
            base_url=self.hub_auth.api_url.rstrip("/") + "/",
            headers={"Authorization": f"token {self.hub_auth.api_token}"},
            timeout=10.0,
            trust_env=False,
        )

    async def authenticate(self, handler: RequestHandler, *, fresh: bool = False) -> Caller | None:
        """Return the caller, or None if there is none."""
        model = await self._model(handler, fresh)
        if model is None:
            self._refuse_forged(handler)
            return None
        if not self.hub_auth.check_scopes(self.hub_auth.access_scopes, model):
            token = handler.request.headers.get("Authorization") is not None
            raise Forbidden(
                f"The token of {model['name']} is not for benchpool. Create one with the scope "
                f"{ACCESS} on the Hub's page Token. If the page refuses that, an administrator "
                "grants the scope."
                if token
                else f"{model['name']} may not use benchpool. An administrator can grant the scope "
                f"{ACCESS}."
            )
        if model.get("kind", "user") == "service":
            return Caller(model["name"], admin=bool(model.get("admin")), kind="service")
        return await self._person(model["name"], fresh)

    def login_url(self, handler: RequestHandler) -> str:
        """Return the Hub's authorisation page, which redirects back to this request."""
        query: dict[str, str] = {}
        proof: dict[str, str] = {}
        if getattr(self.hub_auth, "pkce_enabled", False):  # JupyterHub 6
            verifier, challenge, method = self.hub_auth.generate_pkce_code_challenge()
            query = {"code_challenge": challenge, "code_challenge_method": method}
            proof = {"code_verifier": verifier}
        query["state"] = self.hub_auth.set_state_cookie(
            handler, next_url=handler.request.uri, **proof
        )
        return url_concat(self.hub_auth.login_url, query)

    def xsrf_token(self, handler: RequestHandler) -> str:
        """Return the XSRF token that JupyterHub binds to session and service."""
        token = handler.xsrf_token
        return token.decode() if isinstance(token, bytes) else str(token)

    def routes(self) -> list[tuple[str, type[RequestHandler]]]:
        """Return the OAuth callback."""
        return [(rf"{self.hub_auth.base_url}oauth_callback", HubOAuthCallbackHandler)]

    async def close(self) -> None:
        """Close the connections to the Hub."""
        await self._http.aclose()

    async def _model(self, handler: RequestHandler, fresh: bool) -> dict[str, Any] | None:
        try:
            if fresh:
                token = self.hub_auth.get_token(handler)
                asked = self.hub_auth.user_for_token(token, use_cache=False, sync=False)
                return await asked if token else None
            return await self.hub_auth.get_user(handler, sync=False)  # type: ignore[no-any-return]
        except HTTPError as failed:
            raise _hub_away() from failed

    def _refuse_forged(self, handler: RequestHandler) -> None:
        """Raise ``Forbidden`` for a session without an XSRF token. Do nothing without a session."""
        header = handler.request.headers.get("Authorization")
        if header is None and self.hub_auth.get_token(handler) is not None:
            raise Forbidden(
                "This browser session has expired, or its page's XSRF token is missing. Open the "
                "page again.",
                code="xsrf",
            )

    async def _person(self, name: str, fresh: bool) -> Caller | None:
        now = self._clock()
        known = self._people.get(name)
        if known is not None and now - known[0] < CACHE_S and not fresh:
            return known[1]
        caller = await self._ask(name)
        if caller is None:
            return None
        if len(self._people) >= 10_000:
            self._people.clear()
        self._people[name] = (now, caller)
        return caller

    async def _ask(self, name: str) -> Caller | None:
        try:
            answer = await self._http.get(f"users/{quote(name, safe='')}")
            if answer.status_code == 404:
                return None  # removed after the token was made
            answer.raise_for_status()
            model = answer.json()
        except (httpx.HTTPError, ValueError) as failed:
            raise _hub_away() from failed
        groups = frozenset(model.get("groups", ()))
        return Caller(model["name"], admin=bool(model.get("admin")), groups=groups)


def _hub_away() -> Unavailable:
    return Unavailable(
        "The Hub cannot identify you at the moment. Try again in a few seconds.", code="hub-away"
    )
