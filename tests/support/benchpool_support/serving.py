"""The real API over a real pool, store and local runtime, on a free port of the loopback.

It runs in a thread of its own, so that it serves plain and asynchronous clients, browsers and the
command line in the same way. Only the Hub is replaced: users have fixed tokens.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from benchpool_scheduler.api import Api, BodyBounds, NodeIdentity, Rate, Timing
from benchpool_scheduler.app.request_origin import LOOPBACK, RequestOrigins
from benchpool_scheduler.app.serving import Front
from benchpool_scheduler.client import Client, Credentials
from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import ENDED
from benchpool_scheduler.contract.forwarding import Proxies
from benchpool_scheduler.errors import Refused
from benchpool_scheduler.hub import HubUser, StaticDirectory
from benchpool_scheduler.runtime import Runtime
from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_scheduler.runtime.parker import Parker
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.store.sqlite import SqliteStore
from benchpool_scheduler.telemetry import NO_SAMPLING, Sampling
from benchpool_support.waiting import PATIENCE_S

T = TypeVar("T")

PREFIX = "/services/benchpool/"

PEOPLE: Mapping[str, Caller] = {
    "susan": Caller("susan"),
    "joe": Caller("joe"),
    "jemma": Caller("jemma"),  # leads susan's project
    "root": Caller("root", admin=True),
    "hub": Caller("benchpool-hub", admin=True, kind="service"),
}
"""Users by token; a user's token is the name."""

CONFIGURATION = """\
version: 1
build:
  users: {susan: 1}
projects:
  - {name: vision, quota: 2, members: [susan], leads: [jemma]}
  - {name: speech, quota: 2, members: [joe]}
policy: {grace_s: 1}
"""


@dataclass
class TokenIdentity:
    """Identity by fixed tokens, except the ``revoked`` ones."""

    people: Mapping[str, Caller] = field(default_factory=lambda: dict(PEOPLE))
    revoked: set[str] = field(default_factory=set)

    async def authenticate(self, handler: RequestHandler, *, fresh: bool = False) -> Caller | None:
        """Return the user of the request's token."""
        header = handler.request.headers.get("Authorization", "")
        token = header.removeprefix("token ").removeprefix("Bearer ")
        return None if token in self.revoked else self.people.get(token)

    def login_url(self, handler: RequestHandler) -> str:
        """Return the Hub's login."""
        return "/hub/login"

    def xsrf_token(self, handler: RequestHandler) -> str:
        """Return an empty token, because there are no browser sessions here."""
        return ""

    def routes(self) -> list[tuple[str, type[RequestHandler]]]:
        """Return no routes."""
        return []


@dataclass
class Served:
    """Running service."""

    url: str
    pool: Pool
    api: Api
    identity: TokenIdentity
    loop: asyncio.AbstractEventLoop

    def credentials(self, name: str) -> Credentials:
        """Return address and token of a user."""
        return Credentials(self.url, name)

    def client(self, name: str, *, patience_s: float = 0.0) -> Client:
        """Return a client of a user."""
        return Client(self.credentials(name), patience_s=patience_s, keyed_patience_s=patience_s)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the service's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)


@contextmanager
def served(
    state: Path,
    *,
    gpus: int = 5,
    configuration: str = CONFIGURATION,
    timing: Timing | None = None,
    rate: Rate | None = None,
    bodies: BodyBounds | None = None,
    port: int = 0,
    keep_jobs: bool = False,
    runtime: Runtime | None = None,
    metrics_token: str = "",
    nodes: NodeIdentity | None = None,
    sampling: Sampling = NO_SAMPLING,
    parker: Parker | None = None,
    proxies: Proxies = LOOPBACK,
    base_url: str = PREFIX.rstrip("/"),
) -> Iterator[Served]:
    """Serve a pool from a state folder; a second call with the same folder serves the same pool.

    Jobs end with the service unless ``keep_jobs`` is set. Without ``runtime``, workers are
    processes. ``base_url`` is the public address, which the service itself does not serve.
    """
    begun: dict[str, Any] = {}
    ready, stop = threading.Event(), asyncio.Event()

    async def life() -> None:
        identity = TokenIdentity()
        pool = _pool(state, gpus, configuration, runtime, sampling, parker, base_url)
        await pool.open()
        bounds: dict[str, Any] = {"rate": rate, "timing": timing, "bodies": bodies}
        api = Api(pool, identity, **bounds, metrics_token=metrics_token, nodes=nodes)
        server, at = _listening(api, port, proxies)
        begun["served"] = Served(at, pool, api, identity, asyncio.get_running_loop())
        ready.set()
        await stop.wait()
        if not keep_jobs:
            await asyncio.wait_for(_end_jobs(pool), PATIENCE_S)
        server.stop()
        await api.end()
        await asyncio.wait_for(server.close_all_connections(), PATIENCE_S)
        await pool.close()

    thread = threading.Thread(target=_run(life, begun, ready), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S), "the service does not open"
    if "failed" in begun:
        raise begun["failed"]
    service: Served = begun["served"]
    try:
        yield service
    finally:
        service.loop.call_soon_threadsafe(stop.set)
        thread.join(2 * PATIENCE_S)
        if "failed" in begun:
            raise begun["failed"]


def _listening(api: Api, port: int, proxies: Proxies) -> tuple[HTTPServer, str]:
    """Return a server of the API on loopback, and its address."""
    front = Front(Application(api.rules(PREFIX)), RequestOrigins(lambda: proxies))
    server, sockets = HTTPServer(front), bind_sockets(port, "127.0.0.1")
    server.add_sockets(sockets)
    return server, f"http://127.0.0.1:{sockets[0].getsockname()[1]}{PREFIX}".rstrip("/")


async def _end_jobs(pool: Pool) -> None:
    """Cancel the unfinished jobs and wait until they have ended."""
    root, news = PEOPLE["root"], pool.events.follow(PEOPLE["root"], 0)
    while running := [job for job in pool.jobs.select(root, all=True) if job.state not in ENDED]:
        for job in running:
            with suppress(Refused):  # ended by itself meanwhile
                await pool.jobs.act(root, job.id, "cancel")
        await anext(news)


def _run(
    life: Callable[[], Coroutine[Any, Any, None]], begun: dict[str, Any], ready: threading.Event
) -> Callable[[], None]:
    def run() -> None:
        try:
            asyncio.run(life())
        except BaseException as failed:
            begun["failed"] = failed
        finally:
            ready.set()

    return run


def _pool(
    state: Path,
    gpus: int,
    configuration: str,
    runtime: Runtime | None,
    sampling: Sampling,
    parker: Parker | None,
    base_url: str,
) -> Pool:
    users = tuple(HubUser(one.name, one.admin) for one in PEOPLE.values() if one.kind == "user")
    file = state / "benchpool.yaml"
    if not file.exists():
        state.mkdir(parents=True, exist_ok=True)
        file.write_text(configuration)
    return Pool(
        SqliteStore(state / "scheduler"),
        LocalRuntime(state, simulated(gpus, "A100")) if runtime is None else runtime,
        load(file.read_text(), str(file)),
        state=state,
        directory=StaticDirectory(users),
        base_url=base_url,
        configuration_file=file,
        sampling=sampling,
        parker=parker,
    )
