"""A Hub that rejects the service's own token is unavailable; else the user's token is invalid."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest_asyncio
from tornado.web import Application, RequestHandler, create_signed_value

from benchpool_scheduler.api.hub_auth import CertainHubAuth
from benchpool_scheduler.api.identity import HubIdentity
from benchpool_scheduler.errors import BenchpoolError
from benchpool_support import direct
from benchpool_support.gate_stage import listening

OURS, SUSANS = "ours", "of-susan"
SCOPE = "access:services!service=benchpool"
SECRET = b"of this test's cookies, 32 bytes"
PREFIX = "/services/benchpool/"


@dataclass
class Hub:
    """Hub that accepts susan's token and the token of the service.

    Attributes:
        refuses: Number of next answers with status 403, as with a locked database.
        asked: Tokens that the Hub was asked to identify.
    """

    refuses: int = 0
    asked: list[str] = field(default_factory=list)


class WhoseToken(RequestHandler):
    """The Hub's answer about a token."""

    def initialize(self, hub: Hub) -> None:
        """Answer for this Hub."""
        self.hub = hub

    def get(self) -> None:
        """Answer."""
        token = self.request.headers["Authorization"].split()[1]
        self.hub.asked.append(token)
        if self.hub.refuses or token not in (OURS, SUSANS):
            self.hub.refuses = max(0, self.hub.refuses - 1)
            self.set_status(403)
            return
        self.write({"kind": "user", "name": "susan", "scopes": [SCOPE]})


class Person(RequestHandler):
    """The Hub's answer about a user."""

    def get(self, name: str) -> None:
        """Answer."""
        self.write({"name": name, "admin": False, "groups": []})


class WhoAsks(RequestHandler):
    """Page of the service that answers with the name of the caller."""

    def initialize(self, identity: HubIdentity) -> None:
        """Identify callers by this identity."""
        self.identity = identity

    async def get(self) -> None:
        """Answer with the name."""
        try:
            caller = await self.identity.authenticate(self)
        except BenchpoolError as error:
            self.set_status(error.http_status)
            self.write(error.code)
        else:
            self.write(caller.name if caller else "nobody")


@dataclass
class Site:
    """The service and its Hub."""

    url: str
    hub: Hub

    async def asked_by(self, token: str) -> str:
        """Return the name of the caller with this token."""
        async with direct.AsyncClient() as client:
            return (await client.get(self.url, headers={"Authorization": f"token {token}"})).text

    async def asked_in_browser(self) -> httpx.Response:
        """Return the answer to Susan's browser session."""
        session = create_signed_value(SECRET, "service-benchpool", SUSANS).decode()
        headers = {"Cookie": f"service-benchpool={session}", "Sec-Fetch-Mode": "navigate"}
        async with direct.AsyncClient() as client:
            return await client.get(self.url, headers=headers)


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    hub = Hub()
    rules: list[Any] = [
        ("/hub/api/user", WhoseToken, {"hub": hub}),
        ("/hub/api/users/(.*)", Person),
    ]
    async with listening(Application(rules)) as hub_port:
        auth = CertainHubAuth(
            api_url=f"http://127.0.0.1:{hub_port}/hub/api",
            api_token=OURS,
            oauth_client_id="service-benchpool",
            base_url=PREFIX,
            hub_prefix="/hub/",
            hub_host="",
            access_scopes={SCOPE},
            cache_max_age=60,
        )
        identity = HubIdentity(auth)
        pages = Application([("/", WhoAsks, {"identity": identity})], cookie_secret=SECRET)
        async with listening(pages) as port:
            yield Site(f"http://127.0.0.1:{port}/", hub)
        await identity.close()


async def test_token_rejected_by_hub_is_unauthenticated(site: Site) -> None:
    assert await site.asked_by("nonsense") == "nobody"
    assert OURS in site.hub.asked


async def test_hub_rejecting_service_token_is_unavailable(site: Site) -> None:
    site.hub.refuses = 1000
    assert await site.asked_by(SUSANS) == "hub-away"
    site.hub.refuses = 0
    assert await site.asked_by(SUSANS) == "susan"


async def test_hub_request_is_retried_after_rejection(site: Site) -> None:
    site.hub.refuses = 1
    assert await site.asked_by(SUSANS) == "susan"


async def test_rejection_is_not_cached(site: Site) -> None:
    for _ in range(2):
        site.hub.asked.clear()
        assert await site.asked_by("nonsense") == "nobody"
        assert "nonsense" in site.hub.asked


async def test_known_token_is_cached(site: Site) -> None:
    for _ in range(2):
        assert await site.asked_by(SUSANS) == "susan"
    assert site.hub.asked == [SUSANS]


async def test_browser_session_survives_hub_outage(site: Site) -> None:
    site.hub.refuses = 1000
    answer = await site.asked_in_browser()
    assert (answer.text, answer.headers.get_list("set-cookie")) == ("hub-away", [])
    site.hub.refuses = 0
    assert (await site.asked_in_browser()).text == "susan"
