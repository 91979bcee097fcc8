"""A standby replica forwards requests unchanged and without buffering."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.httpserver import HTTPServer
from tornado.iostream import StreamClosedError
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler, websocket_connect

from benchpool_scheduler.app import serving, standby

PREFIX = "/services/benchpool/"
BODY = bytes(range(256)) * 8192  # 2 MiB


class Echo(RequestHandler):
    async def post(self) -> None:
        self.set_status(201)
        self.add_header("Set-Cookie", "a=1")
        self.add_header("Set-Cookie", "b=2")
        self.set_header("X-Seen", self.request.headers.get("Authorization", ""))
        self.set_header("X-Query", self.request.query)
        self.set_header("X-Host", self.request.host)
        self.finish(self.request.body)

    async def delete(self) -> None:
        self.set_status(204)
        self.finish()


class Stream(RequestHandler):
    resume: asyncio.Event

    async def get(self) -> None:
        self.set_header("Content-Type", "text/event-stream")
        self.write("first")
        await self.flush()
        await self.resume.wait()
        self.finish("second")


class Words(WebSocketHandler):
    """WebSocket that echoes each message and then sends its ``X-Forwarded-For`` header."""

    def prepare(self) -> None:
        if self.request.headers.get("Authorization") != "token t":
            self.set_status(401)
            self.finish("who are you?")

    def check_origin(self, origin: str) -> bool:
        return True

    async def on_message(self, message: str | bytes) -> None:
        await self.write_message(message, binary=True)
        await self.write_message(self.request.headers["X-Forwarded-For"])


def url_of(server: HTTPServer) -> str:
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    return f"http://127.0.0.1:{sockets[0].getsockname()[1]}"


@contextlib.asynccontextmanager
async def listening(*servers: HTTPServer) -> AsyncIterator[list[str]]:
    urls = [url_of(server) for server in servers]
    try:
        yield urls
    finally:
        for server in servers:
            server.stop()
            await server.close_all_connections()


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=120) as client:
        yield client


@pytest.fixture
async def between() -> AsyncIterator[httpx.AsyncClient]:
    async with standby.client() as client:
        yield client


def front(leader: Callable[[], tuple[str, str] | None], between: Any) -> serving.Front:
    return serving.Front(Application(standby.rules(PREFIX, leader, between)))


async def test_bodies_headers_and_answers_are_forwarded_unchanged(
    http: httpx.AsyncClient, between: httpx.AsyncClient
) -> None:
    leading = HTTPServer(Application([(r"/.*", Echo)]), max_body_size=2**30)
    known: list[str] = []
    stands = serving.http_server(front(lambda: ("first", known[0]), between))
    async with listening(leading, stands) as (leader, url):
        known.append(leader)
        answer = await http.post(
            f"{url}{PREFIX}api/v1/objects?a=%2F", content=BODY, headers={"Authorization": "token t"}
        )
        assert (answer.status_code, answer.content) == (201, BODY)
        assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
        assert answer.headers["x-seen"] == "token t"
        assert answer.headers["x-query"] == "a=%2F"
        assert answer.headers["x-host"] == url.removeprefix("http://")

        async def pieces() -> AsyncIterator[bytes]:
            yield BODY[:1000]
            yield BODY[1000:]

        chunked = await http.post(f"{url}{PREFIX}x", content=pieces())
        assert chunked.content == BODY
        assert (await http.delete(f"{url}{PREFIX}x")).status_code == 204


async def test_event_stream_is_forwarded_event_by_event(
    http: httpx.AsyncClient, between: httpx.AsyncClient
) -> None:
    Stream.resume = asyncio.Event()
    leading = HTTPServer(Application([(r"/.*", Stream)]))
    known: list[str] = []
    stands = serving.http_server(front(lambda: ("first", known[0]), between))
    async with listening(leading, stands) as (leader, url):
        known.append(leader)
        async with http.stream("GET", f"{url}{PREFIX}api/v1/events") as answer:
            arriving = answer.aiter_text()
            assert await anext(arriving) == "first"
            Stream.resume.set()
            assert await anext(arriving) == "second"


async def test_websocket_and_its_refusal_are_forwarded(
    between: httpx.AsyncClient,
) -> None:
    leading = HTTPServer(Application([(r"/.*", Words)]))
    known: list[str] = []
    stands = serving.http_server(front(lambda: ("first", known[0]), between))
    async with listening(leading, stands) as (leader, url), asyncio.timeout(60):
        known.append(leader)
        at = f"{url.replace('http', 'ws')}{PREFIX}s/chat/socket"
        socket = await websocket_connect(HTTPRequest(at, headers={"Authorization": "token t"}))
        for size in (3, 200_000):
            await socket.write_message(b"x" * size, binary=True)
            assert await socket.read_message() == b"x" * size
            assert await socket.read_message() == "127.0.0.1"
        socket.close()
        with pytest.raises(HTTPClientError, match="401"):
            await websocket_connect(at)


async def test_websocket_to_missing_leader_gets_retry_after(
    between: httpx.AsyncClient,
) -> None:
    stands = serving.http_server(front(lambda: ("first", "http://127.0.0.1:9"), between))
    async with listening(stands) as (url,):
        with pytest.raises(HTTPClientError, match="503") as refused:
            await websocket_connect(f"{url.replace('http', 'ws')}{PREFIX}s/chat/socket")
        assert refused.value.response is not None
        assert refused.value.response.headers["Retry-After"] == "2"


async def test_leader_gets_only_client_and_forwarding_headers(
    between: httpx.AsyncClient,
) -> None:
    class Names(RequestHandler):
        def get(self) -> None:
            self.finish(" ".join(sorted(self.request.headers)))

    leading = HTTPServer(Application([(r"/.*", Names)]))
    known: list[str] = []
    stands = serving.http_server(front(lambda: ("first", known[0]), between))
    async with listening(leading, stands) as (leader, url):
        known.append(leader)
        reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
        writer.write(b"GET /s/chat/ HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n")
        answer = (await reader.read()).decode()
        writer.close()
    assert answer.partition("\r\n\r\n")[2] == (
        "Host X-Benchpool-Handed-On X-Forwarded-For X-Forwarded-Proto"
    )


@pytest.mark.parametrize(
    ("leader", "words", "named"),
    [
        (None, "no replica leads at the moment", None),
        (("first", "http://127.0.0.1:9"), "first leads and does not answer", "first"),
    ],
)
async def test_missing_leader_gets_503_with_retry_after(
    http: httpx.AsyncClient,
    between: httpx.AsyncClient,
    leader: tuple[str, str] | None,
    words: str,
    named: str | None,
) -> None:
    stands = serving.http_server(front(lambda: leader, between))
    async with listening(stands) as (url,):
        health = await http.get(f"{url}{PREFIX}api/v1/health")
        assert (health.status_code, health.json()) == (200, {"ok": True})
        answer = await http.get(f"{url}{PREFIX}api/v1/jobs")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert answer.headers.get("x-benchpool-leader") == named
        assert answer.json()["error"]["code"] == "standing-by"
        assert words in answer.json()["error"]["message"]


async def test_mutual_forwarding_between_replicas_is_rejected(
    http: httpx.AsyncClient, between: httpx.AsyncClient
) -> None:
    known: list[str] = []
    one = serving.http_server(front(lambda: ("second", known[1]), between))
    other = serving.http_server(front(lambda: ("first", known[0]), between))
    async with listening(one, other) as urls:
        known.extend(urls)
        answer = await http.get(f"{urls[0]}{PREFIX}api/v1/jobs")
        assert answer.status_code == 503


async def test_kept_connection_reaches_new_leader(
    http: httpx.AsyncClient, between: httpx.AsyncClient
) -> None:
    answering = front(lambda: None, between)
    async with listening(serving.http_server(answering)) as (url,):
        assert (await http.post(f"{url}{PREFIX}x")).status_code == 503
        answering.application = Application([(r"/.*", Echo)])
        assert (await http.post(f"{url}{PREFIX}x")).status_code == 201


class Long(RequestHandler):
    async def get(self) -> None:
        with contextlib.suppress(StreamClosedError):
            for _ in range(8):
                self.write(BODY)
                await self.flush()


async def test_client_disconnect_is_no_fault(
    http: httpx.AsyncClient, between: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    leading = HTTPServer(Application([(r"/.*", Long)]))
    known: list[str] = []
    stands = serving.http_server(front(lambda: ("first", known[0]), between))
    async with listening(leading, stands) as (leader, url):
        known.append(leader)
        for _ in range(3):
            async with http.stream("GET", f"{url}{PREFIX}api/v1/jobs") as answer:
                await anext(answer.aiter_raw())
        assert (await http.get(f"{url}{PREFIX}api/v1/health")).is_success
    assert [it.message for it in caplog.records if it.levelname == "ERROR"] == []


async def test_stopped_leader_is_not_awaited(
    http: httpx.AsyncClient, between: httpx.AsyncClient
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    over = asyncio.Event()
    stopped = await asyncio.start_server(silent, "127.0.0.1", 0)
    at = f"http://127.0.0.1:{stopped.sockets[0].getsockname()[1]}"
    stands = serving.http_server(front(lambda: ("first", at), between))
    try:
        async with listening(stands) as (url,), asyncio.timeout(60):
            asked = [http.post(f"{url}{PREFIX}x", content=body) for body in (b"", BODY * 16)]
            for answer in await asyncio.gather(*asked):
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    finally:
        over.set()
        stopped.close()


class TakesItsTime(RequestHandler):
    looked = 0
    enough: asyncio.Event

    async def get(self, what: str) -> None:
        if what == "health":
            TakesItsTime.looked += 1
            if TakesItsTime.looked == 2:
                self.enough.set()
        else:
            await self.enough.wait()
        self.finish("{}")


async def test_slow_leader_is_awaited(http: httpx.AsyncClient, between: httpx.AsyncClient) -> None:
    TakesItsTime.enough = asyncio.Event()
    leading = HTTPServer(Application([(r"/.*/(\w+)", TakesItsTime)]))
    known: list[str] = []
    stands = serving.http_server(front(lambda: ("first", known[0]), between))
    async with listening(leading, stands) as (leader, url):
        known.append(leader)
        assert (await http.get(f"{url}{PREFIX}api/v1/whatif")).status_code == 200
    assert TakesItsTime.looked == 2


async def test_request_to_replaced_leader_is_rejected(
    http: httpx.AsyncClient, between: httpx.AsyncClient
) -> None:
    TakesItsTime.enough = asyncio.Event()
    leading = HTTPServer(Application([(r"/.*/(\w+)", TakesItsTime)]))
    known: list[str] = []
    names = iter(("first", "second"))
    stands = serving.http_server(front(lambda: (next(names), known[0]), between))
    async with listening(leading, stands) as (leader, url):
        known.append(leader)
        answer = await http.get(f"{url}{PREFIX}api/v1/whatif")
        TakesItsTime.enough.set()
    assert answer.status_code == 503


async def test_metrics_of_standby_replica_show_no_leadership(
    http: httpx.AsyncClient, between: httpx.AsyncClient
) -> None:
    leading = HTTPServer(Application([(r"/.*", Echo)]))
    known: list[str] = []
    rules = standby.rules(PREFIX, lambda: ("first", known[0]), between, "figures-only")
    stands = serving.http_server(serving.Front(Application(rules)))
    async with listening(leading, stands) as (leader, url):
        known.append(leader)
        address = f"{url}{PREFIX}api/v1/metrics"
        own = await http.get(address, headers={"Authorization": "Bearer figures-only"})
        assert own.status_code == 200
        assert "benchpool_leading 0.0" in own.text
        handed_on = await http.post(address, headers={"Authorization": "token t"})
        assert handed_on.headers["x-seen"] == "token t"
