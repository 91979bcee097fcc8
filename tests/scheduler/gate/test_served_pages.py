"""A served page and the waiting page in a real browser (Chromium)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, expect
from tornado.web import Application, RequestHandler

from benchpool_scheduler.gate import Backend, Openness
from benchpool_scheduler.web.assets import AssetHandler
from benchpool_scheduler.web.routes import STATIC
from benchpool_support.browser import chromium
from benchpool_support.gate_stage import PREFIX, SESSION, Stage, listening, staged
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.e2e

TRIES = """
async () => {
  const ways = {};
  const tried = async (name, way) => {
    try { ways[name] = await way(); } catch (error) { ways[name] = "stopped"; }
  };
  const framed = (address) => new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.onload = () => {
      try { done(frame.contentDocument.body.textContent.trim()); } catch { done("stopped"); }
    };
    frame.src = address;
    document.body.append(frame);
  });
  const opened = (address) => new Promise((done) => {
    const other = open(address);
    setTimeout(() => {
      try { done(other.document.body.textContent.includes("secret") ? "read" : "stopped"); }
      catch { done("stopped"); }
    }, 1500);
  });
  const text = async (address, options) => (await fetch(address, options)).text();
  await tried("own", () => text("own"));
  await tried("own post", () => text("own", { method: "POST", body: "x" }));
  await tried("hub", () => text("/hub/home"));
  await tried("api", () => text("/services/benchpool/api/v1/jobs", { method: "POST", body: "{}" }));
  await tried("lab", () => text("/user/susan/lab"));
  await tried("redirect", () => text("leave"));
  await tried("climb", () => text("climb"));
  await tried("frame of own", () => framed("own"));
  await tried("frame of lab", () => framed("/user/susan/lab"));
  await tried("window of hub", () => opened("/hub/home"));
  await tried("window of benchpool", () => opened("/services/benchpool/s/other/"));
  await tried("cookie", async () => document.cookie);
  await tried("worker of all", async () => {
    await navigator.serviceWorker.register("worker.js", { scope: "/" });
    return "registered";
  });
  await tried("beacon", async () => {
    await navigator.sendBeacon("/hub/beacon", "x");
    return "sent";
  });
  return ways;
}
"""


class Served(RequestHandler):
    """Page that tries to reach other pages."""

    def get(self, path: str) -> None:
        """Answer."""
        if path == "leave":
            self.set_header("Location", "/hub/home")
            self.set_status(302)
        elif path == "climb":
            self.set_header("Location", "../../../../hub/home")
            self.set_status(302)
        elif path == "worker.js":
            self.set_header("Content-Type", "text/javascript")
            self.set_header("Service-Worker-Allowed", "/")
        elif path == "own":
            self.write("mine")
        elif path == "hub/home":
            self.write("mine too")
        else:
            self.set_header("Cross-Origin-Opener-Policy", "unsafe-none")
            self.write("<!doctype html><title>chat</title><body>hello</body>")

    def post(self, path: str) -> None:
        """Answer."""
        self.write("mine")


class Neighbour(RequestHandler):
    """Another page of the origin, as open as pages of notebook servers are."""

    asked: list[str] = []  # noqa: RUF012

    def _serve(self, path: str) -> None:
        self.asked.append(f"{self.request.method} {path}")
        self.write("a secret of susan's")

    get = post = _serve


@pytest_asyncio.fixture
async def origin() -> AsyncIterator[Stage]:
    Neighbour.asked.clear()
    rules = [
        (f"{PREFIX}static/(.*)", AssetHandler, {"path": str(STATIC)}),
        ("(/hub/.*|/user/.*|/services/benchpool/api/.*)", Neighbour),
    ]
    async with staged(rules) as stage, listening(Application([("/(.*)", Served)])) as port:
        stage.directory.set("chat", Openness.READY, (Backend("c1", "127.0.0.1", port),))
        stage.directory.set("other", Openness.STARTING, (), "It keeps a secret.")
        yield stage


@pytest_asyncio.fixture
async def window(origin: Stage) -> AsyncIterator[BrowserContext]:
    async with chromium() as browser:
        context = await browser.new_context()
        base = f"http://127.0.0.1:{origin.port}"
        cookies: list[Any] = [
            {"name": SESSION, "value": "susan", "url": base, "httpOnly": True},
            {"name": "_xsrf", "value": "token", "url": base + PREFIX, "httpOnly": True},
        ]
        await context.add_cookies(cookies)
        yield context


async def test_served_page_reaches_only_itself(origin: Stage, window: BrowserContext) -> None:
    page = await window.new_page()
    await page.goto(f"{origin.url}s/chat/")
    ways = await page.evaluate(TRIES)
    own = {"own": "mine", "own post": "mine", "frame of own": "mine", "cookie": ""}
    kept = {"redirect": "mine too", "climb": "mine too"}  # its own /hub/home
    assert {name: ways[name] for name in own} == own
    assert {name: ways[name] for name in kept} == kept
    rest = {name: way for name, way in ways.items() if name not in own | kept}
    assert rest.pop("beacon") in ("sent", "stopped")
    assert rest == dict.fromkeys(rest, "stopped")
    assert "GET /hub/home" in Neighbour.asked  # the window opened but was unreadable
    assert not [one for one in Neighbour.asked if one != "GET /hub/home"]


async def test_waiting_page_follows_state_and_opens_service(
    origin: Stage, window: BrowserContext
) -> None:
    origin.directory.set("late", Openness.ASLEEP, (), "It wakes: likely in 2 minutes.")
    page = await window.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(f"{origin.url}s/late/lab?x=1")
    await expect(page.get_by_role("heading")).to_have_text("late is asleep")
    await expect(page.get_by_text("It wakes: likely in 2 minutes.")).to_be_visible()
    await until_async(lambda: origin.directory.waiting("late"))
    origin.directory.set("late", Openness.STARTING, (), "It loads its model.")
    await expect(page.get_by_role("heading")).to_have_text("late is starting")
    await expect(page.get_by_text("It loads its model.")).to_be_visible()
    questions = [one for one in asked if "service-state" in one]
    assert len(questions) <= 3  # a request is held until the state changes
    await until_async(lambda: origin.directory.waiting("late"))
    origin.directory.woken.clear()
    origin.directory.set("late", Openness.ASLEEP, (), "It sleeps.")
    await until_async(lambda: origin.directory.woken)  # the open page wakes it
    await until_async(lambda: origin.directory.waiting("late"))
    backends = origin.directory.routes["chat"].backends
    origin.directory.set("late", Openness.READY, backends)
    await expect(page).to_have_title("chat")
    assert page.url == f"{origin.url}s/late/lab?x=1"
