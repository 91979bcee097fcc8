"""The gate with benchpool's own identity code: the Hub's OAuth sessions, scopes and tokens."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from html import unescape as html

import httpx
import pytest
import pytest_asyncio
from jupyterhub.services.auth import HubOAuth
from tornado.web import Application, RequestHandler, create_signed_value

from benchpool_scheduler.api import HubIdentity
from benchpool_scheduler.gate import Backend, Openness, ServiceGate
from benchpool_support import direct
from benchpool_support.gate_stage import PREFIX, SmallDirectory, echo, echoed, listening

SECRET = b"of this test's cookies, 32 bytes"
SCOPE = "access:services!service=benchpool"
SUSANS = "of-susan"
TOKENS = {SUSANS: ("susan", [SCOPE]), "narrow": ("susan", ["read:users!user=susan"])}


class WhoseToken(RequestHandler):
    """The Hub's answer about a token."""

    def get(self) -> None:
        """Answer."""
        token = self.request.headers["Authorization"].split()[1]
        if token not in TOKENS:
            self.set_status(403)
            return
        name, scopes = TOKENS[token]
        self.write({"kind": "user", "name": name, "scopes": scopes})


class Person(RequestHandler):
    """The Hub's answer about a user."""

    def get(self, name: str) -> None:
        """Answer."""
        self.write({"name": name, "admin": False, "groups": []})


@dataclass
class Site:
    """Gate in front of a service, with a Hub that accepts susan."""

    url: str
    host: str
    backend: Backend
    directory: SmallDirectory


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    directory = SmallDirectory()
    hub = Application([("/hub/api/user", WhoseToken), ("/hub/api/users/(.*)", Person)])
    async with listening(hub) as hub_port, echo() as backend:
        auth = HubOAuth(
            api_url=f"http://127.0.0.1:{hub_port}/hub/api",
            api_token="ours",
            oauth_client_id="service-benchpool",
            base_url=PREFIX,
            hub_prefix="/hub/",
            hub_host="",
            access_scopes={SCOPE},
        )
        identity = HubIdentity(auth)
        gate = ServiceGate(directory, identity, prefix=PREFIX)
        directory.set("chat", Openness.READY, (backend,))
        application = Application([*gate.routes(), *identity.routes()], cookie_secret=SECRET)
        async with listening(application, xheaders=True) as port:
            host = f"127.0.0.1:{port}"
            yield Site(f"http://{host}{PREFIX}s/chat/", host, backend, directory)
            await gate.end(0)
        await identity.close()


def session(token: str = SUSANS) -> str:
    value = create_signed_value(SECRET, "service-benchpool", token)
    return f"service-benchpool={value.decode()}; theirs=1"


async def ask(site: Site, method: str = "GET", **headers: str) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with direct.AsyncClient() as client:
        return await client.request(method, site.url, headers=sent)


async def test_token_is_accepted_and_removed(site: Site) -> None:
    answer = await ask(site, Authorization="Bearer of-susan")
    seen = echoed(answer.content)["headers"]
    assert seen["X-Forwarded-User"] == ["susan"]
    assert "of-susan" not in answer.text


@pytest.mark.parametrize("mode", ["navigate", "cors", "no-cors", "same-origin"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_session_is_accepted_without_xsrf_token(site: Site, mode: str, method: str) -> None:
    """A served page has no access to benchpool's XSRF token; the same origin is sufficient."""
    answer = await ask(
        site, method, Cookie=session(), Sec_Fetch_Mode=mode, Sec_Fetch_Site="same-origin"
    )
    assert answer.status_code == 200
    assert echoed(answer.content)["headers"]["Cookie"] == ["theirs=1"]
    assert "of-susan" not in answer.text


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_session_from_another_site_is_rejected(site: Site, method: str) -> None:
    answer = await ask(
        site, method, Cookie=session(), Sec_Fetch_Mode="cors", Sec_Fetch_Site="cross-site"
    )
    assert answer.status_code == 403


async def test_token_without_scope_is_rejected(site: Site) -> None:
    answer = await ask(site, Authorization="token narrow")
    assert answer.status_code == 403
    assert SCOPE in answer.json()["error"]["message"]


async def test_ended_session_redirects_page_and_rejects_script(
    site: Site,
) -> None:
    ended = session("ended")
    page = await ask(site, Cookie=ended, Accept="text/html", Sec_Fetch_Mode="navigate")
    assert page.status_code == 302
    assert page.headers["Location"].startswith("/hub/api/oauth2/authorize?")
    script = await ask(
        site, "POST", Cookie=ended, Sec_Fetch_Mode="cors", Sec_Fetch_Site="same-origin"
    )
    assert script.status_code in (401, 403)


async def test_token_in_websocket_url_is_ignored(site: Site) -> None:
    async with direct.AsyncClient() as client:
        answer = await client.get(
            f"{site.url}?token=of-susan",
            headers={"Sec-Fetch-Mode": "websocket", "Upgrade": "websocket"},
        )
    assert answer.status_code == 401


async def test_waiting_page_reads_state_but_neighbour_cannot(
    site: Site,
) -> None:
    site.directory.set("chat", Openness.STARTING, (), "It loads.")
    script = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"}
    async with direct.AsyncClient(headers={"Cookie": session()}) as browser:
        page = await browser.get(
            site.url, headers={"Accept": "text/html", "Sec-Fetch-Mode": "navigate"}
        )
        assert page.status_code == 503
        token = re.search('data-xsrf="([^"]+)"', page.text)
        assert token is not None
        (cookie,) = (one for one in page.headers.get_list("Set-Cookie") if "_xsrf=" in one)
        assert f"Path={PREFIX}" in cookie
        shown = {"Cookie": f"{session()}; {cookie.partition(';')[0]}", **script}
        address = f"http://{site.host}{PREFIX}service-state/chat"
        answer = await browser.get(address, headers={**shown, "X-XSRFToken": html(token[1])})
        assert answer.json()["sentence"] == "It loads."
        assert (await browser.get(address, headers=shown)).status_code == 403
