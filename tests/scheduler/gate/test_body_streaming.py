"""Bodies are streamed in both directions and limited, and each side ends with the other."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import psutil
import pytest
from tornado.web import Application, RequestHandler, stream_request_body

from benchpool_scheduler.api import BodyBounds
from benchpool_scheduler.gate import Backend, Openness
from benchpool_support import direct
from benchpool_support.gate_stage import Stage, listening, raw, staged
from benchpool_support.waiting import until_async

MIB = 2**20


@stream_request_body
class Hash(RequestHandler):
    """Handler that answers with the hash of the body, without storing it."""

    def prepare(self) -> None:
        """Begin."""
        connection: Any = self.request.connection
        connection.set_max_body_size(2**40)
        self.hash, self.length = hashlib.sha256(), 0

    def data_received(self, chunk: bytes) -> None:
        """Take a piece."""
        self.hash.update(chunk)
        self.length += len(chunk)

    def put(self) -> None:
        """Answer."""
        self.write({"hash": self.hash.hexdigest(), "length": self.length})

    post = put


async def pieces(number: int) -> AsyncIterator[bytes]:
    piece = bytes(range(256)) * 4096
    for _ in range(number):
        yield piece


@pytest.mark.parametrize("method", ["PUT", "POST"])
async def test_upload_is_forwarded_complete_without_buffering(
    stage: Stage, susan: httpx.AsyncClient, method: str
) -> None:
    wanted = hashlib.sha256()
    async for piece in pieces(300):
        wanted.update(piece)
    async with listening(Application([(".*", Hash)])) as port:
        stage.directory.set("chat", Openness.READY, (Backend("h1", "127.0.0.1", port),))
        before = psutil.Process().memory_info().rss / MIB
        answer = await susan.request(method, "s/chat/", content=pieces(300))
        grown = psutil.Process().memory_info().rss / MIB - before
    assert answer.json() == {"hash": wanted.hexdigest(), "length": 300 * MIB}
    assert grown < 100


async def test_body_with_known_length_keeps_content_length(
    stage: Stage, susan: httpx.AsyncClient
) -> None:
    async with listening(Application([(".*", Hash)])) as port:
        stage.directory.set("chat", Openness.READY, (Backend("h1", "127.0.0.1", port),))
        answer = await susan.put("s/chat/", content=b"x" * MIB)
        assert answer.json()["length"] == MIB
        answer = await susan.post("s/chat/")
        assert answer.json()["length"] == 0


async def test_events_arrive_immediately(stage: Stage, susan: httpx.AsyncClient) -> None:
    """Each event is sent only after the previous one has arrived."""
    arrived: asyncio.Queue[bytes] = asyncio.Queue()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for number in range(20):
            event = b"data: %d\n\n" % number
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            assert await asyncio.wait_for(arrived.get(), 120) == event
        writer.write(b"0\r\n\r\n")

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        async with susan.stream("GET", "s/chat/") as answer:
            got = []
            async for event in answer.aiter_raw():
                got.append(event)
                arrived.put_nowait(event)
    assert got == [b"data: %d\n\n" % number for number in range(20)]


async def test_http_1_0_stream_arrives_immediately(stage: Stage, susan: httpx.AsyncClient) -> None:
    arrived = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nfirst")
        await asyncio.wait_for(arrived.wait(), 120)
        writer.write(b"second")

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        async with susan.stream("GET", "s/chat/") as answer:
            got = []
            async for piece in answer.aiter_raw():
                got.append(piece)
                arrived.set()
    assert got == [b"first", b"second"]


async def test_program_gets_start_of_body_before_its_end(
    stage: Stage, susan: httpx.AsyncClient
) -> None:
    received = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"first")
        received.set()
        await reader.readuntil(b"0\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.wait_for(received.wait(), 120)
        yield b"second"

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        assert (await susan.post("s/chat/", content=body())).content == b"ok"


async def test_slow_reader_applies_backpressure_to_program(
    stage: Stage, susan: httpx.AsyncClient
) -> None:
    flooded = asyncio.Event()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (200 * MIB))
        for _ in range(200):
            writer.write(b"x" * MIB)
            await writer.drain()
        flooded.set()

    async with raw(flood) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        async with susan.stream("GET", "s/chat/") as answer:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(flooded.wait(), 1)
            length = 0
            async for piece in answer.aiter_raw():
                length += len(piece)
    assert length == 200 * MIB


async def test_program_request_ends_when_client_disconnects(
    stage: Stage, susan: httpx.AsyncClient
) -> None:
    ended = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if stage.gate.in_flight("chat") == 1:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\nfirst")
        assert await reader.read() == b""
        ended.set()

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        async with susan.stream("GET", "s/chat/") as answer:
            assert await anext(answer.aiter_raw()) == b"first"
        await asyncio.wait_for(ended.wait(), 120)
        await asyncio.wait_for(stage.gate.drained(backend.id), 120)
        assert stage.gate.figures("chat").p50_ms is None  # no answer, no latency


async def test_program_request_ends_when_client_disconnects_before_answer(
    stage: Stage,
) -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        ended.set()

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        _, writer = await asyncio.open_connection("127.0.0.1", stage.port)
        writer.write(
            b"POST /services/benchpool/s/chat/ HTTP/1.1\r\nHost: h\r\n"
            b"Authorization: token susan\r\nContent-Length: 100\r\n\r\nhalf of it"
        )
        await asyncio.wait_for(asked.wait(), 120)
        writer.close()
        await asyncio.wait_for(ended.wait(), 120)
        await asyncio.wait_for(stage.gate.drained(backend.id), 120)


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf \r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf \r\nnonsense\r\n",
    ],
)
async def test_truncated_answer_is_error(
    stage: Stage, susan: httpx.AsyncClient, reply: bytes
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        with pytest.raises(httpx.RemoteProtocolError):
            await susan.get("s/chat/")
        await asyncio.wait_for(stage.gate.drained(backend.id), 120)


async def test_answer_before_end_of_body_arrives(stage: Stage) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nless")
        await writer.drain()

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        reader, writer = await asyncio.open_connection("127.0.0.1", stage.port)
        writer.write(
            b"POST /services/benchpool/s/chat/ HTTP/1.1\r\nHost: h\r\n"
            b"Authorization: token susan\r\nContent-Length: 1000000\r\n\r\nhalf of it"
        )
        assert b" 413 " in await asyncio.wait_for(reader.readuntil(b"less"), 120)
        writer.close()


async def test_stalled_body_is_rejected_with_timeout() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    bounds = BodyBounds(patience_s=0.2)
    async with staged(bodies=bounds) as stage, raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        reader, writer = await asyncio.open_connection("127.0.0.1", stage.port)
        writer.write(
            b"POST /services/benchpool/s/chat/ HTTP/1.1\r\nHost: h\r\n"
            b"Authorization: token susan\r\nContent-Length: 1000000\r\n\r\nhalf of it"
        )
        answer = await asyncio.wait_for(reader.readuntil(b"}}"), 120)
        assert b" 408 " in answer
        assert b"bytes were received in 0.2 s" in answer
        writer.close()
        await asyncio.wait_for(stage.gate.drained(backend.id), 120)


async def test_slow_program_is_not_blamed_on_sender() -> None:
    resume = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await resume.wait()
        await reader.readexactly(50 * MIB)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with staged(bodies=BodyBounds(patience_s=0.1)) as stage, raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        asyncio.get_running_loop().call_later(1.0, resume.set)
        async with direct.AsyncClient(base_url=stage.url, timeout=120) as client:
            answer = await client.post(
                "s/chat/", content=b"x" * 50 * MIB, headers={"Authorization": "token susan"}
            )
    assert answer.content == b"ok"


async def test_concurrent_bodies_per_user_are_limited() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with staged(bodies=BodyBounds(user_requests=1)) as stage, raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        head = (
            b"POST /services/benchpool/s/chat/ HTTP/1.1\r\nHost: h\r\n"
            b"Authorization: token susan\r\nContent-Length: 10\r\n\r\n"
        )
        _, first = await asyncio.open_connection("127.0.0.1", stage.port)
        first.write(head + b"half")
        await until_async(lambda: stage.gate.in_flight("chat") != 0)
        reader, second = await asyncio.open_connection("127.0.0.1", stage.port)
        second.write(head + b"0123456789")
        answer = await asyncio.wait_for(reader.readuntil(b"}}"), 120)
        assert b" 429 " in answer
        assert b"\r\nRetry-After: 5\r\n" in answer
        assert stage.gate.in_flight("chat") == 1
        first.close()
        second.close()


async def test_rejected_upload_gets_reason_during_sending(
    stage: Stage,
) -> None:
    stage.directory.set("chat", Openness.PAUSED, (), "Susan paused it.")
    async with direct.AsyncClient(base_url=stage.url, timeout=120) as client:
        answer = await client.post(
            "s/chat/", content=pieces(30), headers={"Authorization": "token susan"}
        )
    assert answer.status_code == 503
    assert answer.json()["error"]["message"] == "chat: Susan paused it."
