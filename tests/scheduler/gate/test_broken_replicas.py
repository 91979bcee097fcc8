"""Replicas that refuse or close connections, or answer with invalid data."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from benchpool_scheduler.gate import Backend, Openness
from benchpool_support.gate_stage import Stage, Talk, echo, echoed, raw
from benchpool_support.loopback import free_port
from benchpool_support.waiting import until_async


def refusing(job: str) -> Backend:
    """Return a replica on whose port nothing listens."""
    return Backend(job, "127.0.0.1", free_port())


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST"])
async def test_request_is_retried_on_another_replica_after_refused_connection(
    stage: Stage, susan: httpx.AsyncClient, method: str
) -> None:
    """The first replica has received no byte, so that any method may be retried on another one."""
    async with echo("b") as backend:
        stage.directory.set("chat", Openness.READY, (refusing("a"), backend))
        answer = await susan.request(method, "s/chat/", content=b"x" if method[0] == "P" else b"")
        assert answer.status_code == 200
        if method != "HEAD":
            assert echoed(answer.content)["method"] == method
    assert stage.gate.in_flight("chat") == 0


async def test_two_refused_connections_are_bad_gateway(
    stage: Stage, susan: httpx.AsyncClient
) -> None:
    async with echo("c") as backend:
        stage.directory.set("chat", Openness.READY, (refusing("a"), refusing("b"), backend))
        answer = await susan.get("s/chat/")
    assert answer.status_code == 502
    error = answer.json()["error"]
    assert error["code"] == "service-broken"
    assert error["message"].startswith("chat takes no connection, although it was ready (2 of 3")
    assert stage.gate.in_flight("chat") == 0


NONSENSE = [
    b"",
    b"220 smtp.example.org ESMTP\r\n",
    b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
]


@pytest.mark.parametrize("reply", NONSENSE)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_non_http_answer_is_bad_gateway(
    stage: Stage, susan: httpx.AsyncClient, method: str, reply: bytes
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        answer = await susan.request(method, "s/chat/", content=b"x" if method == "POST" else b"")
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "service-broken"


def counting(answers: list[bytes]) -> tuple[Talk, list[int]]:
    """Return a replica that gives one answer per connection and closes it after a delay."""
    asked: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            asked.append(len(asked))
            if not answers:
                return
            writer.write(answers.pop(0))

    return talk, asked


async def test_closed_kept_connection_loses_no_request(
    stage: Stage, susan: httpx.AsyncClient
) -> None:
    """The second request finds the connection closing, and uses a new one."""
    connections = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await reader.readuntil(b"\r\n\r\n")  # and sends no answer

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        answers = [(await susan.get("s/chat/")).content for _ in range(5)]
    assert answers == [b"ok"] * 5
    assert connections >= 3


async def test_non_idempotent_request_is_sent_once(stage: Stage, susan: httpx.AsyncClient) -> None:
    talk, asked = counting([])
    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        assert (await susan.post("s/chat/", content=b"pay")).status_code == 502
    assert asked == [0]


async def test_connections_are_kept_for_next_request(
    stage: Stage, susan: httpx.AsyncClient
) -> None:
    connections = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with raw(talk) as backend:
        stage.directory.set("chat", Openness.READY, (backend,))
        for _ in range(10):
            await susan.get("s/chat/")
    assert connections == 1


async def test_restart_on_another_port_is_followed_immediately(
    stage: Stage, susan: httpx.AsyncClient
) -> None:
    for job in ("old", "new"):
        async with echo(job) as backend:
            stage.directory.set("chat", Openness.READY, (backend,))
            host = echoed((await susan.get("s/chat/")).content)["headers"]["Host"]
            assert host == [f"127.0.0.1:{backend.port}"]


async def test_version_change_rejects_no_request(stage: Stage, susan: httpx.AsyncClient) -> None:
    """The old replica gets no new requests, finishes the open ones and ends when drained."""
    release = asyncio.Event()

    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await release.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold")

    async with raw(old, "old") as first, echo("new") as second:
        stage.directory.set("chat", Openness.READY, (first,))
        asked = asyncio.ensure_future(susan.get("s/chat/"))
        await until_async(lambda: stage.gate.in_flight("chat", "old") != 0)
        stage.directory.set("chat", Openness.READY, (second,))
        drained = asyncio.ensure_future(stage.gate.drained("old"))
        assert (await susan.get("s/chat/")).status_code == 200
        assert not drained.done()
        release.set()
        assert (await asked).content == b"old"
        await asyncio.wait_for(drained, 120)
