"""The gate in its place behind the Hub's proxy, which is the real proxy here."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest
import pytest_asyncio
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.web import Application
from tornado.websocket import WebSocketHandler, websocket_connect

from benchpool_scheduler.gate import Backend, Openness
from benchpool_scheduler.workstation import proxy
from benchpool_support import direct
from benchpool_support.gate_stage import SESSION, Stage, echo, echoed, listening, raw
from benchpool_support.loopback import free_port
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.slow


async def listens(port: int) -> None:
    """Wait by polling until another process listens."""

    async def look() -> bool:
        with suppress(ConnectionRefusedError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return True
        return False

    await until_async(look)


@pytest_asyncio.fixture
async def front(stage: Stage) -> AsyncIterator[str]:
    """Address of a real configurable-http-proxy before the gate, without a trailing slash."""
    found = proxy.find(os.environ)
    if found is None:
        pytest.fail("no configurable-http-proxy here: `make node` installs it")
    port, api = free_port(), free_port()
    process = await asyncio.create_subprocess_exec(
        *found.command,
        *("--ip", "127.0.0.1", "--port", str(port)),
        *("--api-ip", "127.0.0.1", "--api-port", str(api)),
        *("--default-target", f"http://127.0.0.1:{stage.port}"),
        env={**os.environ, "CONFIGPROXY_AUTH_TOKEN": "of this test"},
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(60):
            await listens(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


@pytest_asyncio.fixture
async def program(front: str) -> AsyncIterator[httpx.AsyncClient]:
    """HTTP client of susan's program that connects through the proxy."""
    async with direct.AsyncClient(
        base_url=f"{front}/services/benchpool/",
        headers={"Authorization": "Bearer susan"},
        timeout=120,
    ) as client:
        yield client


async def test_paths_and_names_are_forwarded_without_forged_headers(
    stage: Stage, front: str, program: httpx.AsyncClient
) -> None:
    forged = {
        "X-Forwarded-User": "root",
        "X-Forwarded-For": "10.9.9.9",
        "X-Real-Ip": "10.9.9.9",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "evil.example",
    }
    async with echo() as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        request = echoed((await program.get("s/chat/a%2Fb?c=%20", headers=forged)).content)
    assert request["uri"] == "/a%2Fb?c=%20"
    seen = request["headers"]
    assert seen["X-Forwarded-User"] == ["susan"]
    assert seen["X-Forwarded-For"][0].endswith("127.0.0.1")
    assert seen["X-Forwarded-Proto"] == ["http"]
    assert seen["X-Forwarded-Host"] == [front.removeprefix("http://")]
    assert "X-Real-Ip" not in seen


async def test_events_arrive_immediately_and_end_with_reader(
    stage: Stage, program: httpx.AsyncClient
) -> None:
    arrived, ended = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        await asyncio.wait_for(arrived.wait(), 120)
        writer.write(b"data: 2\n\n")
        await reader.read()
        ended.set()

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        async with program.stream("GET", "s/chat/") as answer:
            events = answer.aiter_raw()
            assert await anext(events) == b"data: 1\n\n"
            arrived.set()
            assert await anext(events) == b"data: 2\n\n"
        await asyncio.wait_for(ended.wait(), 120)


async def test_large_upload_is_forwarded(stage: Stage, program: httpx.AsyncClient) -> None:
    async def body() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * 1_000_000

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"chunked" in head.lower()
        length = 0
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
            length += size
        await reader.readline()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n%d" % length)

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        assert (await program.post("s/chat/", content=body())).content == b"50000000"


async def test_websockets_are_accepted_only_from_own_page(stage: Stage, front: str) -> None:
    class Talker(WebSocketHandler):
        async def on_message(self, message: str | bytes) -> None:
            await self.write_message(message)

    def asking(origin: str) -> HTTPRequest:
        url = front.replace("http:", "ws:") + "/services/benchpool/s/talk/"
        return HTTPRequest(url, headers={"Cookie": f"{SESSION}=susan", "Origin": origin})

    async with listening(Application([(".*", Talker)])) as port:
        stage.directory.set("talk", Openness.READY, (Backend("t1", "127.0.0.1", port),))
        client = await websocket_connect(asking(front))
        await client.write_message("hello")
        assert await client.read_message() == "hello"
        client.close(4000, "enough")
        await asyncio.wait_for(stage.gate.drained("t1"), 120)
        with pytest.raises(HTTPClientError):
            await websocket_connect(asking("http://evil.example"))


async def test_held_request_ends_when_client_disconnects(
    stage: Stage, program: httpx.AsyncClient
) -> None:
    stage.directory.set("chat", Openness.STARTING, (), "It loads.")
    asked = asyncio.ensure_future(program.get("s/chat/", headers={"Prefer": "wait=300"}))
    await until_async(lambda: stage.directory.waiting("chat"))
    asked.cancel()
    await until_async(lambda: not stage.directory.waiting("chat"))


async def test_program_gets_state_and_retry_after(stage: Stage, program: httpx.AsyncClient) -> None:
    stage.directory.set("chat", Openness.ASLEEP, (), "It wakes now.", retry_after_s=30)
    answer = await program.post("s/chat/v1/completions", json={})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "30")
    assert answer.json()["error"]["code"] == "service-asleep"
