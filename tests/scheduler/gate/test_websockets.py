"""Websockets through the gate: every frame arrives unchanged in both directions."""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.httputil import HTTPHeaders
from tornado.web import Application
from tornado.websocket import (
    WebSocketClientConnection,
    WebSocketHandler,
    WebSocketProtocol13,
    websocket_connect,
)

from benchpool_scheduler.api import Timing
from benchpool_scheduler.gate import Backend, Openness
from benchpool_support.gate_stage import SESSION, Stage, listening, raw, staged


class Talker(WebSocketHandler):
    """Websocket that echoes messages; ``close CODE REASON`` closes it."""

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        return "graphql-ws" if "graphql-ws" in subprotocols else None

    def get_compression_options(self) -> dict[str, Any] | None:
        return {} if self.request.query == "deflate" else None

    async def on_message(self, message: str | bytes) -> None:
        if isinstance(message, str) and message.startswith("close"):
            _, code, reason = message.split(maxsplit=2)
            self.close(int(code), reason)
        elif message == "vanish":
            self.ws_connection.stream.close()  # type: ignore[union-attr]
        elif message == "user":
            await self.write_message(self.request.headers["X-Forwarded-User"])
        else:
            await self.write_message(message, binary=isinstance(message, bytes))

    def on_close(self) -> None:
        self.settings["closed"].put_nowait((self.close_code, self.close_reason))


Closed = asyncio.Queue[tuple[int | None, str | None]]


@pytest.fixture
def closed() -> Closed:
    """Close code and reason that the program got at the end of a websocket."""
    return asyncio.Queue()


@pytest_asyncio.fixture
async def talk(stage: Stage, closed: Closed) -> AsyncIterator[Stage]:
    application = Application([(".*", Talker)], websocket_max_message_size=2**26, closed=closed)
    async with listening(application) as port:
        stage.directory.set("talk", Openness.READY, (Backend("t1", "127.0.0.1", port),))
        yield stage


async def connected(
    stage: Stage, query: str = "", headers: dict[str, str] | None = None, **more: Any
) -> WebSocketClientConnection:
    url = stage.url.replace("http:", "ws:") + f"s/talk/ws{query}"
    sent = HTTPHeaders(headers or {"Authorization": "token susan"})
    return await websocket_connect(HTTPRequest(url, headers=sent), **more)


@pytest.mark.parametrize("message", ["text", "", "ä€𝄞", b"\x00\xff bytes", b""])
async def test_text_and_bytes_are_echoed_unchanged(talk: Stage, message: str | bytes) -> None:
    client = await connected(talk)
    await client.write_message(message, binary=isinstance(message, bytes))
    assert await client.read_message() == message
    client.close()


async def test_compression_is_negotiated_by_both_ends(talk: Stage) -> None:
    client = await connected(talk, "?deflate", compression_options={})
    await client.write_message("a" * 100_000)
    assert await client.read_message() == "a" * 100_000
    assert client.headers is not None
    assert "permessage-deflate" in client.headers["Sec-WebSocket-Extensions"]
    client.close()


async def test_large_message_is_forwarded_complete(talk: Stage) -> None:
    client = await connected(talk, max_message_size=2**26)
    await client.write_message(b"x" * 20_000_000, binary=True)
    assert await client.read_message() == b"x" * 20_000_000
    client.close()


async def test_subprotocol_is_chosen_by_program(talk: Stage) -> None:
    client = await connected(talk, subprotocols=["other", "graphql-ws"])
    assert client.selected_subprotocol == "graphql-ws"
    client.close()


async def test_program_gets_user_name(talk: Stage) -> None:
    client = await connected(talk)
    await client.write_message("user")
    assert await client.read_message() == "susan"
    client.close()


async def test_close_codes_and_reasons_are_forwarded_both_ways(talk: Stage, closed: Closed) -> None:
    client = await connected(talk)
    await client.write_message("close 4001 enough for today")
    assert await client.read_message() is None
    assert (client.close_code, client.close_reason) == (4001, "enough for today")
    client = await connected(talk)
    await closed.get()
    client.close(4002, "mine")
    assert await closed.get() == (4002, "mine")
    await talk.gate.drained("t1")


async def test_ping_is_answered_by_other_end(talk: Stage) -> None:
    pongs: asyncio.Queue[bytes] = asyncio.Queue()
    client = await connected(talk)
    client.on_pong = lambda data: pongs.put_nowait(data)  # type: ignore[method-assign]
    client.ping(b"are you there")
    reading = asyncio.ensure_future(client.read_message())
    assert await asyncio.wait_for(pongs.get(), 120) == b"are you there"
    client.close()
    await reading


async def test_program_is_notified_when_client_disconnects(talk: Stage, closed: Closed) -> None:
    client = await connected(talk)
    assert talk.gate.in_flight("talk", "t1") == 1
    client.protocol.stream.close()  # type: ignore[union-attr]
    assert (await asyncio.wait_for(closed.get(), 120))[0] is None
    await asyncio.wait_for(talk.gate.drained("t1"), 120)


async def test_client_is_notified_when_program_disconnects(talk: Stage) -> None:
    client = await connected(talk)
    await client.write_message("vanish")
    assert await asyncio.wait_for(client.read_message(), 120) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://{host}.evil.example"},
        {},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "websocket", "Origin": "http://{host}1"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
async def test_session_from_another_site_opens_no_websocket(
    talk: Stage, headers: dict[str, str]
) -> None:
    sent = {key: value.format(host=f"127.0.0.1:{talk.port}") for key, value in headers.items()}
    with pytest.raises(HTTPClientError) as refused:
        await connected(talk, headers={**sent, "Cookie": f"{SESSION}=susan"})
    assert refused.value.code == 403
    assert talk.gate.figures("talk").last_request_at is None


async def test_own_page_opens_websocket_with_session(talk: Stage) -> None:
    own = {"Origin": f"http://127.0.0.1:{talk.port}", "Cookie": f"{SESSION}=susan"}
    client = await connected(talk, headers=own)
    await client.write_message("hello")
    assert await client.read_message() == "hello"
    client.close()


async def test_refusal_by_program_is_forwarded(stage: Stage) -> None:
    async with listening(Application([])) as port:
        stage.directory.set("talk", Openness.READY, (Backend("t1", "127.0.0.1", port),))
        with pytest.raises(HTTPClientError) as refused:
            await connected(stage)
    assert refused.value.code == 404


async def test_websocket_is_closed_when_caller_loses_permission() -> None:
    application = Application([(".*", Talker)], closed=asyncio.Queue())
    async with staged(timing=Timing(recheck_s=0.05)) as stage, listening(application) as port:
        stage.directory.set("talk", Openness.READY, (Backend("t1", "127.0.0.1", port),))
        client = await connected(stage)
        await client.write_message("hello")
        assert await client.read_message() == "hello"
        stage.directory.denied.add("susan")
        assert await asyncio.wait_for(client.read_message(), 120) is None
        await asyncio.wait_for(stage.gate.drained("t1"), 120)


async def test_slow_reader_applies_backpressure_to_writer(stage: Stage) -> None:
    """Only the kernel's buffers hold data on the way."""
    flooded = asyncio.Event()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        key = re.search(rb"Sec-Websocket-Key: (\S+)", head, re.IGNORECASE)
        assert key is not None
        accept = WebSocketProtocol13.compute_accept_value(key[1]).encode()
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        for _ in range(200):
            writer.write(b"\x82\x7f" + struct.pack("!Q", 1_000_000) + b"x" * 1_000_000)
            await writer.drain()
        flooded.set()

    async with raw(flood) as backend:
        stage.directory.set("talk", Openness.READY, (backend,))
        client = await connected(stage)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(flooded.wait(), 1)
        for _ in range(200):
            assert await client.read_message() == b"x" * 1_000_000
        await asyncio.wait_for(flooded.wait(), 120)
        client.close()
