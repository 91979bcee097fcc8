"""A gate on the loopback with real replicas behind it, which echo their requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.httputil import url_concat
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler

from benchpool_scheduler.app.serving import Front
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.gate import Backend, Openness, ServiceGate, ServiceRoute
from benchpool_scheduler.service import Caller

PREFIX = "/services/benchpool/"
PEOPLE: Mapping[str, Caller] = {
    "susan": Caller("susan"),
    "joe": Caller("joe"),
    "hub": Caller("benchpool-hub", admin=True, kind="service"),
}
SESSION = "service-benchpool"


@dataclass
class SmallDirectory:
    """Services that a test sets; user joe has access to none."""

    routes: dict[str, ServiceRoute] = field(default_factory=dict)
    woken: list[str] = field(default_factory=list)
    denied: set[str] = field(default_factory=lambda: {"joe"})
    _changes: dict[str, set[asyncio.Future[None]]] = field(default_factory=dict)

    def route(self, name: str, caller: Caller) -> ServiceRoute:
        """Return the route of a service."""
        if name not in self.routes or caller.name in self.denied:
            raise NotFound(f"There is no service {name}: look at the list of services.")
        return self.routes[name]

    def asked(self, name: str) -> None:
        """Record that a request arrived."""
        self.woken.append(name)

    def changed(self, name: str) -> Awaitable[object]:
        """Return an awaitable that completes at the next change."""
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changes.setdefault(name, set()).add(change)
        return change

    def waiting(self, name: str) -> int:
        """Return the number of requests that wait for a change."""
        return sum(not change.done() for change in self._changes.get(name, ()))

    def set(
        self,
        name: str,
        state: Openness = Openness.READY,
        backends: tuple[Backend, ...] = (),
        sentence: str = "",
        *,
        retry_after_s: int = 7,
        keep_prefix: bool = False,
    ) -> None:
        """Change a service and wake the waiting requests."""
        self.routes[name] = ServiceRoute(
            name, state, backends, sentence, retry_after_s, keep_prefix
        )
        self.notify(name)

    def notify(self, name: str) -> None:
        """Wake the requests that wait for a change."""
        for change in self._changes.pop(name, ()):
            if not change.done():
                change.set_result(None)


@dataclass
class SessionIdentity:
    """Users by fixed tokens, in the header or in a cookie like a session of the Hub."""

    people: Mapping[str, Caller] = field(default_factory=lambda: dict(PEOPLE))
    ended: set[str] = field(default_factory=set)

    async def authenticate(self, handler: RequestHandler, *, fresh: bool = False) -> Caller | None:
        """Return the user of the token or session, or None."""
        header = handler.request.headers.get("Authorization", "")
        token = header.removeprefix("token ").removeprefix("Bearer ") or handler.get_cookie(SESSION)
        return None if token is None or token in self.ended else self.people.get(token)

    def login_url(self, handler: RequestHandler) -> str:
        """Return the address of the Hub's login, with the way back."""
        return url_concat("/hub/login", {"next": handler.request.uri or ""})

    def xsrf_token(self, handler: RequestHandler) -> str:
        """Return the token for pages."""
        return "the-page's-token"

    def routes(self) -> list[tuple[str, type[RequestHandler]]]:
        """Return no routes."""
        return []


class Echo(RequestHandler):
    """Handler that returns its request as JSON."""

    def _respond(self) -> None:
        request = self.request
        self.write(
            {
                "method": request.method,
                "uri": request.uri,
                "headers": list(request.headers.get_all()),
                "body": request.body.decode("latin1"),
            }
        )

    get = post = put = patch = delete = options = _respond

    def head(self) -> None:
        """Return only the length of the response."""
        self.set_header("Content-Length", "12345")


@dataclass
class Stage:
    """The gate's address, the gate, its directory and its identity."""

    url: str
    gate: ServiceGate
    directory: SmallDirectory
    identity: SessionIdentity

    @property
    def port(self) -> int:
        """The port that the gate listens on."""
        return int(self.url.split(":")[2].split("/")[0])


@asynccontextmanager
async def staged(rules: Sequence[Any] = (), **options: Any) -> AsyncIterator[Stage]:
    """Serve a gate in the running loop; ``rules`` are further routes of its origin."""
    directory, identity = SmallDirectory(), SessionIdentity()
    gate = ServiceGate(directory, identity, prefix=PREFIX, **options)
    async with listening(Front(Application([*gate.routes(), *rules]))) as port:
        yield Stage(f"http://127.0.0.1:{port}{PREFIX}", gate, directory, identity)
        await gate.end(0)


@asynccontextmanager
async def listening(application: Any, **options: Any) -> AsyncIterator[int]:
    """Serve an application on a free port of the loopback and yield the port."""
    sockets = bind_sockets(0, "127.0.0.1")
    server = HTTPServer(application, **options)
    server.add_sockets(sockets)
    try:
        yield sockets[0].getsockname()[1]
    finally:
        server.stop()
        await server.close_all_connections()


@asynccontextmanager
async def echo(job: str = "job1") -> AsyncIterator[Backend]:
    """Run a replica that returns its request."""
    async with listening(Application([(".*", Echo)])) as port:
        yield Backend(job, "127.0.0.1", port)


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw(talk: Talk, job: str = "raw1") -> AsyncIterator[Backend]:
    """Run a replica that handles each connection with ``talk``."""
    talks: set[asyncio.Task[None] | None] = set()

    async def life(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            await talk(reader, writer)
        writer.close()

    server = await asyncio.start_server(life, "127.0.0.1", 0)
    try:
        yield Backend(job, "127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for one in talks:
            if one is not None:
                one.cancel()


def echoed(answer: bytes) -> dict[str, Any]:
    """Return the body of an ``Echo`` response, with its headers as a dictionary of lists."""
    body: dict[str, Any] = json.loads(answer)
    headers: dict[str, list[str]] = {}
    for name, value in body["headers"]:
        headers.setdefault(name, []).append(value)
    body["headers"] = headers
    return body


__all__ = [
    "PEOPLE",
    "PREFIX",
    "SESSION",
    "Echo",
    "HTTPError",
    "SessionIdentity",
    "SmallDirectory",
    "Stage",
    "Talk",
    "echo",
    "echoed",
    "listening",
    "raw",
    "staged",
]
